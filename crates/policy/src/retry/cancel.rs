//! Stopping calls from outside.
//!
//! A cancelled call starts no further attempt and ends a wait at once. The attempt that is under way
//! is not interrupted: only the code inside it knows how to do that safely.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A switch that stops the calls it was given to. A clone is the same switch; it stays on.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    on: AtomicBool,
    #[cfg(feature = "tokio")]
    tasks: tokio::sync::Notify,
    #[cfg(feature = "blocking")]
    threads: (std::sync::Mutex<()>, std::sync::Condvar),
}

impl CancelToken {
    /// Stops every call this switch was given to.
    pub fn cancel(&self) {
        self.0.on.store(true, Ordering::Release);
        #[cfg(feature = "tokio")]
        self.0.tasks.notify_waiters();
        #[cfg(feature = "blocking")]
        {
            // Taking the lock makes sure that a thread which has just looked is already waiting.
            let _looked = self.0.threads.0.lock();
            self.0.threads.1.notify_all();
        }
    }

    /// Whether it is on.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.on.load(Ordering::Acquire)
    }

    /// Ends when it is switched on.
    #[cfg(feature = "tokio")]
    pub(super) async fn cancelled(&self) {
        // Asking to be told comes before looking: what happens in between is not missed.
        let told = self.0.tasks.notified();
        if !self.is_cancelled() {
            told.await;
        }
    }

    /// Blocks for this long, or until it is switched on.
    #[cfg(feature = "blocking")]
    pub(super) fn block(&self, wait: core::time::Duration) {
        use std::sync::PoisonError;
        let (lock, switched) = &self.0.threads;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let off = |(): &mut ()| !self.is_cancelled();
        drop(switched.wait_timeout_while(guard, wait, off));
    }
}
