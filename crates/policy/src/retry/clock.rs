//! The one file of this crate that reads a clock.
//!
//! Whoever wraps a call lives in real time; everything that decides is given the time. The clock is
//! a parameter of [`Retry`](super::Retry), so that tests bring their own.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

#[cfg(feature = "blocking")]
use super::cancel::CancelToken;
use crate::timestamp::{Timestamp, nanos};

/// Time for async calls.
#[cfg(feature = "tokio")]
pub trait AsyncClock: Sync {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Ends after this long.
    fn wait(&self, wait: Duration) -> impl Future<Output = ()> + Send;
}

/// Time for calls that block.
#[cfg(feature = "blocking")]
pub trait BlockingClock {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Returns after this long, or as soon as `cancel` is switched on.
    fn wait(&self, wait: Duration, cancel: Option<&CancelToken>);
}

/// The machine's clock: monotonic, started from the time of day. Async calls use tokio's timer,
/// which a test may pause.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The time of day, as a number.
fn time_of_day() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a clock reads the time")]
    let today = SystemTime::now();
    let since = today.duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_nanos(since.map_or(0, nanos))
}

#[cfg(feature = "tokio")]
impl AsyncClock for SystemClock {
    fn now(&self) -> Timestamp {
        // The time of day is read once, together with the timer it is then counted on by.
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

    #[expect(clippy::disallowed_methods, reason = "waiting is what a clock is asked for")]
    fn wait(&self, wait: Duration, cancel: Option<&CancelToken>) {
        match cancel {
            Some(cancel) => cancel.block(wait),
            None => std::thread::sleep(wait),
        }
    }
}

/// A clock for tests: it stands still, and waiting moves it on at once. A clone is the same clock.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<Moments>>);

#[derive(Debug, Default)]
struct Moments {
    now: Timestamp,
    waits: Vec<Duration>,
}

impl ManualClock {
    /// Every wait so far.
    #[must_use]
    pub fn waits(&self) -> Vec<Duration> {
        self.lock().waits.clone()
    }

    /// Lets time pass, as a slow call would.
    pub fn advance(&self, by: Duration) {
        let mut moments = self.lock();
        moments.now = moments.now.after(by);
    }

    /// What it shows.
    #[must_use]
    pub fn shows(&self) -> Timestamp {
        self.lock().now
    }

    fn pass(&self, wait: Duration) {
        self.advance(wait);
        self.lock().waits.push(wait);
    }

    fn lock(&self) -> MutexGuard<'_, Moments> {
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
        // Others get their turn, as they would while a real clock runs.
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
