//! The signal that something was stored.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells followers that there is something to read. It does not say what: they read the store, so nothing
/// is lost if they were not listening.
#[derive(Clone, Debug)]
pub struct ChangeSignal(Arc<watch::Sender<u64>>);

impl ChangeSignal {
    pub fn quiet() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Records were stored. Cheap, and may be called from anywhere.
    pub fn stir(&self) {
        self.0.send_modify(|times| *times = times.wrapping_add(1));
    }

    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
