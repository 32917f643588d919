//! The attempts that are under way, by the number of their start.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_policy::{Ticket, Timestamp};

use crate::id::ItemId;

/// The attempts of a job that have started and not ended. The numbers of starts are never used again.
#[derive(Clone, Debug)]
pub struct Starts {
    /// The number of the next start.
    pub next: u64,
    /// Which item each attempt belongs to.
    pub running: BTreeMap<u64, ItemId>,
    /// Attempts whose result comes later, and how long it is waited for.
    pub accepted: BTreeMap<u64, Timestamp>,
    /// The breakers that let attempts through, and with which ticket.
    pub(crate) passes: BTreeMap<u64, (Arc<str>, Ticket)>,
}

impl Default for Starts {
    fn default() -> Self {
        Self {
            next: 1,
            running: BTreeMap::new(),
            accepted: BTreeMap::new(),
            passes: BTreeMap::new(),
        }
    }
}

impl Starts {
    /// Takes note that a number is used.
    pub(super) fn use_up(&mut self, start: u64) {
        self.next = self.next.max(start.saturating_add(1));
    }

    /// Takes note that the result of an attempt comes later. Its target is up, whatever the result is.
    pub(super) fn accept(&mut self, start: u64, until: Timestamp) {
        self.accepted.insert(start, until);
        self.passes.remove(&start);
    }

    pub(super) fn end(&mut self, start: u64) {
        self.running.remove(&start);
        self.accepted.remove(&start);
        self.passes.remove(&start);
    }
}
