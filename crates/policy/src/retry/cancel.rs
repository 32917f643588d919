//! Cancelling wrapped calls.
//!
//! A cancelled call starts no further attempt, and its current wait ends at once. A running attempt is
//! not interrupted: only its own code knows how to do that safely.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Cancels the calls it was given to, for good. A clone is the same token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    cancelled: AtomicBool,
    #[cfg(feature = "tokio")]
    tasks: tokio::sync::Notify,
    #[cfg(feature = "blocking")]
    threads: (std::sync::Mutex<()>, std::sync::Condvar),
}

impl CancelToken {
    /// Stops every call this token was given to.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        #[cfg(feature = "tokio")]
        self.0.tasks.notify_waiters();
        #[cfg(feature = "blocking")]
        {
            // A thread checks the flag under this lock: once we have it, that thread is waiting.
            let _checked = self.0.threads.0.lock();
            self.0.threads.1.notify_all();
        }
    }

    /// Whether [`CancelToken::cancel`] was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Completes when the token is cancelled.
    #[cfg(feature = "tokio")]
    pub(super) async fn cancelled(&self) {
        // Registered before the flag is read, so that a cancellation in between is not missed.
        let notified = self.0.tasks.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// Blocks for this long, or until the token is cancelled.
    #[cfg(feature = "blocking")]
    pub(super) fn block(&self, wait: core::time::Duration) {
        use std::sync::PoisonError;
        let (lock, cancelled) = &self.0.threads;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let not_cancelled = |(): &mut ()| !self.is_cancelled();
        drop(cancelled.wait_timeout_while(guard, wait, not_cancelled));
    }
}
