//! The start numbers of a job and the attempts that run under them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{Ticket, Timestamp};

use super::reservations::ReservedStart;
use super::time_limits::LimitEnd;
use crate::event::codec;
use crate::id::{ItemId, StartId};
use crate::stored::stored;

stored! {
    /// Spaces the starts of a job evenly, over all its runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StartPace {
        pub every: Duration = 0 with "codec::span",
        pub last: Option<Timestamp> = 1 with "codec::maybe_time" has_nil,
    }
}

impl StartPace {
    /// How long no attempt may start. Never longer than the space between two, however the clock was set.
    pub fn wait(&self, now: Timestamp) -> Duration {
        let next = self.last.map_or(Timestamp::ZERO, |last| last.after(self.every));
        next.since(now).min(self.every)
    }
}

/// The running attempts by start number. No number is used twice.
#[derive(Clone, Debug)]
pub struct AttemptStarts {
    pub next: StartId,
    pub running: BTreeMap<StartId, ItemId>,
    /// First attempts that are on record, and that the keeper begins when a slot is free.
    pub reserved: BTreeMap<StartId, ReservedStart>,
    /// Attempts that another service has accepted, and until when its result is awaited.
    pub accepted: BTreeMap<StartId, Timestamp>,
    pub(crate) passes: BTreeMap<StartId, (Arc<str>, Ticket)>,
    pub pace: Option<StartPace>,
    /// What ends each attempt, if anything does.
    pub(crate) limits: BTreeMap<StartId, LimitEnd>,
}

impl Default for AttemptStarts {
    fn default() -> Self {
        Self {
            next: StartId(1),
            running: BTreeMap::new(),
            reserved: BTreeMap::new(),
            accepted: BTreeMap::new(),
            passes: BTreeMap::new(),
            pace: None,
            limits: BTreeMap::new(),
        }
    }
}

impl AttemptStarts {
    pub(super) fn use_up(&mut self, start: StartId) {
        self.next = self.next.max(StartId(start.0.saturating_add(1)));
    }

    /// Also drops the breaker pass: the target is up, whatever the later result is.
    pub(super) fn accept(&mut self, start: StartId, until: Timestamp) {
        self.accepted.insert(start, until);
        self.passes.remove(&start);
    }

    pub(super) fn end(&mut self, start: StartId) {
        self.running.remove(&start);
        self.accepted.remove(&start);
        self.passes.remove(&start);
        self.limits.remove(&start);
    }
}
