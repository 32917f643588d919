//! The script of injected faults, so that a test fails the same way every time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::aggregate::AggregateId;
use crate::error::StoreError;
use crate::version::Version;

/// What happens to an append.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The append is refused with this error and not stored. The store stays usable.
    Refuse(StoreError),
    /// The sync fails and the store must be reopened. The append is then present if `stored`.
    SyncFails { stored: bool },
    /// The store becomes unreachable, and the caller does not learn whether the append was `stored`. That
    /// many `questions` are not answered; the next one ends the outage.
    Outage { stored: bool, questions: u32 },
    /// The append is acknowledged but not stored, as by a disk that lies.
    Lose,
    /// `whole` records of the first aggregate are stored, the next one is damaged, and the sync fails.
    Tear { whole: usize },
    /// This append and all later ones wait until [`FaultyStore::resume`](super::FaultyStore::resume).
    Stall,
}

/// The script and the damage so far. Like a disk, it is shared by handles that are opened one after the
/// other.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<FaultScript>>);

#[derive(Debug, Default)]
struct FaultScript {
    appends: BTreeMap<u64, Fault>,
    reads: BTreeMap<u64, StoreError>,
    seen_appends: u64,
    seen_reads: u64,
    questions: u64,
    torn: BTreeMap<AggregateId, Version>,
}

impl Faults {
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a fault at the n-th append, counted from 1 over all handles.
    pub fn at_append(self, n: u64, fault: Fault) -> Self {
        self.script().appends.insert(n, fault);
        self
    }

    /// Refuses the n-th `read`, counted from 1 over all handles.
    pub fn at_read(self, n: u64, error: StoreError) -> Self {
        self.script().reads.insert(n, error);
        self
    }

    /// The number of appends so far, over all handles.
    pub fn appends(&self) -> u64 {
        self.script().seen_appends
    }

    /// The number of questions so far, over all handles.
    pub fn questions(&self) -> u64 {
        self.script().questions
    }

    pub(super) fn note_question(&self) {
        let mut script = self.script();
        script.questions = script.questions.saturating_add(1);
    }

    pub(super) fn next_append(&self) -> Option<Fault> {
        let mut script = self.script();
        script.seen_appends = script.seen_appends.saturating_add(1);
        let n = script.seen_appends;
        script.appends.remove(&n)
    }

    pub(super) fn next_read(&self) -> Option<StoreError> {
        let mut script = self.script();
        script.seen_reads = script.seen_reads.saturating_add(1);
        let n = script.seen_reads;
        script.reads.remove(&n)
    }

    pub(super) fn tear(&self, aggregate: AggregateId, at: Version) {
        self.script().torn.insert(aggregate, at);
    }

    pub(super) fn torn(&self, aggregate: &AggregateId) -> Option<Version> {
        self.script().torn.get(aggregate).copied()
    }

    pub(super) fn mend(&self, aggregate: &AggregateId) {
        self.script().torn.remove(aggregate);
    }

    fn script(&self) -> MutexGuard<'_, FaultScript> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
