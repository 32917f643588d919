//! What chance has decided in a run, so that the model can follow it.
//!
//! The semantics say between which bounds a delay is drawn and that a release is spread; not what is
//! drawn, nor how it is spread. Where a run is known, the model takes these from it, and only these.

use std::collections::BTreeMap;
use std::time::Duration;

/// What was drawn in a run; or how to guess it, if none is known.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The delays of each command (`w3`) for each item, in order.
    pub delays: BTreeMap<(String, String), Vec<Duration>>,
    /// When each item was let go by a breaker, since the submission, in order.
    pub releases: BTreeMap<String, Vec<Duration>>,
    /// With nothing seen: where in its range a delay is taken to be, in percent.
    pub guess: Option<u32>,
}

impl Seen {
    /// The delay that was drawn.
    pub(super) fn delay(&self, of: &(String, String), place: usize) -> Option<Duration> {
        self.delays.get(of).and_then(|all| all.get(place)).copied()
    }
}
