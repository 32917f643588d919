//! The attempts under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_policy::{Ticket, Timestamp};

use crate::id::{ItemId, StartId};

/// The attempts under way, by the number of their start. Numbers are never used again.
#[derive(Clone, Debug)]
pub struct AttemptStarts {
    pub next: StartId,
    pub running: BTreeMap<StartId, ItemId>,
    /// Attempts whose result comes later, and until when it is awaited.
    pub accepted: BTreeMap<StartId, Timestamp>,
    pub(crate) passes: BTreeMap<StartId, (Arc<str>, Ticket)>,
}

impl Default for AttemptStarts {
    fn default() -> Self {
        Self {
            next: StartId(1),
            running: BTreeMap::new(),
            accepted: BTreeMap::new(),
            passes: BTreeMap::new(),
        }
    }
}

impl AttemptStarts {
    pub(super) fn use_up(&mut self, start: StartId) {
        self.next = self.next.max(StartId(start.0.saturating_add(1)));
    }

    /// The result comes later. The target is up, whatever the result is.
    pub(super) fn accept(&mut self, start: StartId, until: Timestamp) {
        self.accepted.insert(start, until);
        self.passes.remove(&start);
    }

    pub(super) fn end(&mut self, start: StartId) {
        self.running.remove(&start);
        self.accepted.remove(&start);
        self.passes.remove(&start);
    }
}
