//! What takes part in a measurement, and the loop that is timed.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Contestants that do the same thing.
#[derive(Debug)]
pub struct Group {
    /// One word, and a second where a thing is measured in two ways.
    pub name: &'static str,
    /// What one figure is the cost of.
    pub about: &'static str,
    /// What ours should cost.
    pub target: Option<Target>,
    /// Who does not take part, and why.
    pub left_out: &'static str,
    /// Who takes part.
    pub contestants: Vec<Contestant>,
}

/// What the contestants with [`Role::Ours`] should cost.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// At most this part of what the cheapest peer costs.
    OfCheapestPeer(f64),
    /// Less than this many nanoseconds.
    Nanoseconds(f64),
}

/// On whose side a contestant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The crate under test; the target is about this.
    Ours,
    /// The crate under test, in a way the target says nothing about.
    Variant,
    /// Somebody else's crate.
    Peer,
    /// The thing itself with nothing around it.
    Bare,
}

/// One thing that is timed.
pub struct Contestant {
    /// Whose it is, and in which form.
    pub name: &'static str,
    /// What exactly is timed.
    pub about: &'static str,
    /// On whose side it is.
    pub role: Role,
    time: Box<dyn FnMut(u64) -> Duration>,
}

impl std::fmt::Debug for Contestant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contestant")
            .field("name", &self.name)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Contestant {
    /// `time` does the thing so often and says how long that took; what it prepares is not counted.
    pub(crate) fn new(
        role: Role,
        name: &'static str,
        about: &'static str,
        time: impl FnMut(u64) -> Duration + 'static,
    ) -> Self {
        Self { name, about, role, time: Box::new(time) }
    }

    /// How long it takes to do it so often.
    pub fn time(&mut self, iterations: u64) -> Duration {
        (self.time)(iterations)
    }
}

/// Times a thing that is done at once.
#[inline]
pub(crate) fn repeat<T>(iterations: u64, mut once: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..iterations {
        // By reference: a large result is not copied a second time for being looked at.
        black_box(&once());
    }
    start.elapsed()
}

/// Times a thing that is awaited. All calls are awaited by one future, as those of a service are;
/// starting an executor for each would cost more than what is measured.
#[inline]
pub(crate) fn repeat_awaiting<F: Future>(iterations: u64, mut once: impl FnMut() -> F) -> Duration {
    drive(async {
        let start = Instant::now();
        for _ in 0..iterations {
            black_box(&once().await);
        }
        start.elapsed()
    })
}

/// The least of all executors: nothing that is measured here ever has to wait.
pub(crate) fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
