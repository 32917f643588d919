//! The contestants of a measurement, and the loops that are timed.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Contestants that do the same work.
#[derive(Debug)]
pub struct Group {
    /// The name of the group in the report.
    pub name: &'static str,
    /// The work whose cost is one figure.
    pub about: &'static str,
    /// The target for Undaunted.
    pub target: Option<Target>,
    /// The peers that are left out, and why.
    pub left_out: &'static str,
    /// All contestants, in the order of the report.
    pub contestants: Vec<Contestant>,
}

/// The target for contestants with [`Role::Ours`].
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// At most this multiple of the cheapest peer.
    OfCheapestPeer(f64),
    /// Less than this many nanoseconds.
    Nanoseconds(f64),
}

/// What a contestant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The crate under test, to which the target applies.
    Ours,
    /// The crate under test in a form without a target.
    Variant,
    /// Another crate.
    Peer,
    /// The work itself, without a wrapper.
    Bare,
}

/// One contestant: its name, and the loop that is timed.
pub struct Contestant {
    /// The crate and, if there are several, the form.
    pub name: &'static str,
    /// The exact operation that is timed.
    pub about: &'static str,
    /// Whether it is Undaunted, a peer or a baseline.
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
    /// `time` runs the operation this many times and returns how long that took, without its preparation.
    pub(crate) fn new(
        role: Role,
        name: &'static str,
        about: &'static str,
        time: impl FnMut(u64) -> Duration + 'static,
    ) -> Self {
        Self { name, about, role, time: Box::new(time) }
    }

    /// Runs the operation this many times and returns how long that took.
    pub fn time(&mut self, iterations: u64) -> Duration {
        (self.time)(iterations)
    }
}

/// Times a synchronous operation.
#[inline]
pub(crate) fn repeat<T>(iterations: u64, mut once: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..iterations {
        // By reference, so that a large result is not copied a second time.
        black_box(&once());
    }
    start.elapsed()
}

/// Times an async operation. One future awaits all calls, as in a service; starting an executor for each call
/// would cost more than the call.
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

/// A minimal executor: no measured future ever has to wait.
pub(crate) fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
