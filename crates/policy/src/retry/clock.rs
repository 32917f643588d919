//! Clocks for wrapped calls. No other file of this crate reads the time.
//!
//! Decisions take the time as an argument; only a wrapped call runs in real time. Its clock is a parameter
//! of [`Retry`](super::Retry), so that a test can use [`ManualClock`].

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

#[cfg(feature = "blocking")]
use super::cancel::CancelToken;
use crate::timestamp::{Timestamp, nanos};

/// The clock of async calls.
#[cfg(feature = "tokio")]
pub trait AsyncClock: Sync {
    /// The current time of this clock.
    fn now(&self) -> Timestamp;

    /// Completes after this long.
    fn wait(&self, wait: Duration) -> impl Future<Output = ()> + Send;
}

/// The clock of blocking calls.
#[cfg(feature = "blocking")]
pub trait BlockingClock {
    /// The current time of this clock.
    fn now(&self) -> Timestamp;

    /// Blocks for this long, or until `cancel` is cancelled.
    fn wait(&self, wait: Duration, cancel: Option<&CancelToken>);
}

/// The system clock: the time of day when it was first used, plus monotonic time since. Async calls use
/// tokio's timer, which a test may pause.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

fn time_of_day() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a clock reads the time")]
    let today = SystemTime::now();
    let since = today.duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_nanos(since.map_or(0, nanos))
}

#[cfg(feature = "tokio")]
impl AsyncClock for SystemClock {
    fn now(&self) -> Timestamp {
        static START: OnceLock<(tokio::time::Instant, Timestamp)> = OnceLock::new();
        let now = tokio::time::Instant::now();
        let (start, today) = *START.get_or_init(|| (now, time_of_day()));
        today.after(now.saturating_duration_since(start))
    }

    async fn wait(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

#[cfg(feature = "blocking")]
impl BlockingClock for SystemClock {
    fn now(&self) -> Timestamp {
        static START: OnceLock<(std::time::Instant, Timestamp)> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "a clock reads the time")]
        let now = std::time::Instant::now();
        let (start, today) = *START.get_or_init(|| (now, time_of_day()));
        today.after(now.saturating_duration_since(start))
    }

    #[expect(clippy::disallowed_methods, reason = "a blocking clock sleeps")]
    fn wait(&self, wait: Duration, cancel: Option<&CancelToken>) {
        match cancel {
            Some(cancel) => cancel.block(wait),
            None => std::thread::sleep(wait),
        }
    }
}

/// A clock for tests: only waiting and [`ManualClock::advance`] move it, and no wait takes real time. A
/// clone is the same clock.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<ManualTime>>);

#[derive(Debug, Default)]
struct ManualTime {
    now: Timestamp,
    waits: Vec<Duration>,
}

impl ManualClock {
    /// The waits so far, in order.
    #[must_use]
    pub fn waits(&self) -> Vec<Duration> {
        self.lock().waits.clone()
    }

    /// Advances the clock, as a slow call would.
    pub fn advance(&self, by: Duration) {
        let mut time = self.lock();
        time.now = time.now.after(by);
    }

    /// The current time of this clock.
    #[must_use]
    pub fn shows(&self) -> Timestamp {
        self.lock().now
    }

    fn pass(&self, wait: Duration) {
        self.advance(wait);
        self.lock().waits.push(wait);
    }

    fn lock(&self) -> MutexGuard<'_, ManualTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "tokio")]
impl AsyncClock for ManualClock {
    fn now(&self) -> Timestamp {
        self.shows()
    }

    async fn wait(&self, wait: Duration) {
        self.pass(wait);
        // Yields once, so that other tasks run, as they would during a real wait.
        let mut yielded = false;
        core::future::poll_fn(|context| {
            if yielded {
                return core::task::Poll::Ready(());
            }
            yielded = true;
            context.waker().wake_by_ref();
            core::task::Poll::Pending
        })
        .await;
    }
}

#[cfg(feature = "blocking")]
impl BlockingClock for ManualClock {
    fn now(&self) -> Timestamp {
        self.shows()
    }

    fn wait(&self, wait: Duration, _cancel: Option<&CancelToken>) {
        self.pass(wait);
    }
}
