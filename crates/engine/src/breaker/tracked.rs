//! One breaker as a process sees it: the facts on disk, the facts being written, and the jobs that wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use undaunted_policy::{Admission, Ticket, Timestamp, WhenOpen};

use super::journal::{BreakerJournal, HISTORY};
use super::record::{BreakerFact, BreakerRecord};
use super::release::StaggeredRelease;
use super::state::{BreakerChange, BreakerState};
use crate::mutant::{self, Mutant};

#[derive(Clone, Debug, Default)]
pub(super) struct TrackedBreaker {
    pub(super) journal: BreakerJournal,
    /// Facts that the caller is writing, oldest first.
    pub(super) sealed: VecDeque<SealedFacts>,
    /// Facts that are not sealed yet, by job.
    pub(super) open: BTreeMap<Arc<str>, Vec<BreakerFact>>,
    /// `journal`, `sealed` and `open` together; decisions use this.
    pub(super) state: BreakerState,
    /// The generation on disk, and when this process first saw it.
    pub(super) first_seen: Option<(u32, Timestamp)>,
    pub(super) is_stale: bool,
    pub(super) prober: ProbeOwner,
    /// The generation for which the first-ranked job was woken.
    pub(super) announced: Option<u32>,
    pub(super) waiting: BTreeMap<Arc<str>, ProbeOffer>,
    /// Jobs with an item that could probe, the one with the most attempts left first.
    pub(super) ranking: BTreeSet<(Reverse<u64>, Arc<str>)>,
    /// How each job's held items are released after the breaker has closed.
    pub(super) releases: BTreeMap<Arc<str>, StaggeredRelease>,
    pub(super) users: BTreeSet<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(super) struct SealedFacts {
    pub(super) record: BreakerRecord,
    /// Set if the record is on disk, at this version at the latest, after unknown facts of other
    /// processes.
    pub(super) reached: Option<u64>,
}

/// Which process probes for a breaker: the one that holds the claim `probe/NAME`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeOwner {
    /// No known claim; this process may try to take it.
    #[default]
    Unclaimed,
    Ours,
    Others,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeOffer {
    pub held: u32,
    /// Attempts left of the item that would probe; `None` if no item could start now.
    pub left: Option<u64>,
    /// Spreads the releases of different jobs.
    pub draw: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAllowance {
    Admits(u32),
    AdmitsProbe,
    Holds,
    Refuses,
}

impl TrackedBreaker {
    /// Recomputes a stale state. Returns whether circuit or settings changed.
    pub(super) fn refresh(&mut self, now: Timestamp) -> bool {
        if !std::mem::take(&mut self.is_stale) {
            return false;
        }
        let before = self.state.clone();
        let generation = self.journal.state.breaker.generation();
        if self.first_seen.is_none_or(|(of, _)| of != generation) {
            self.first_seen = Some((generation, now));
        }
        self.state = self.with_sealed(now);
        if mutant::is(Mutant::UnwrittenFactsIgnored) {
            self.state = self.on_disk(now);
            return self.update_releases(&before, now);
        }
        for (job, facts) in &self.open {
            for fact in facts {
                let _ = self.state.apply_fact(Some(job), fact);
            }
        }
        self.update_releases(&before, now)
    }

    /// The state once all sealed facts are written.
    fn with_sealed(&self, now: Timestamp) -> BreakerState {
        let mut state = self.on_disk(now);
        for sealed in &self.sealed {
            let _ = state.apply(&sealed.record);
        }
        state
    }

    /// The state on disk. An opening in the future (the clock was set back) counts from when this process
    /// first saw it, so that no opening lasts longer than its recovery timeout.
    fn on_disk(&self, now: Timestamp) -> BreakerState {
        let state = self.journal.state.clone();
        let generation = state.breaker.generation();
        let first_seen = self.first_seen.filter(|(of, _)| *of == generation);
        state.clamped(first_seen.map_or(now, |(_, at)| at))
    }

    /// Starts releases if the breaker has closed. Returns whether circuit or settings changed.
    pub(super) fn update_releases(&mut self, before: &BreakerState, now: Timestamp) -> bool {
        if self.state.is_open_or_half_open() {
            self.releases.clear();
        } else if before.is_open_or_half_open() {
            let timeout = self.state.settings.recovery_timeout;
            let held = self.waiting.iter().filter(|(_, offer)| offer.held > 0);
            let releases = held.map(|(job, offer)| {
                let release = StaggeredRelease::new(now, timeout, offer.held, offer.draw);
                (Arc::clone(job), release)
            });
            self.releases = releases.collect();
        }
        before.breaker.circuit() != self.state.breaker.circuit() || before.settings != self.state.settings
    }

    pub(super) fn may_probe(&self, now: Timestamp) -> bool {
        let answer = self.state.admission(now);
        matches!(answer, Admission::Go(ticket) if ticket.probe && self.may_start_probe(ticket, now))
    }

    /// Whether the sealed facts alone admit the probe, too. Sealed facts are written in order, but facts of
    /// other jobs may be written before open ones, so a probe that starts before the previous result is
    /// sealed could make two run at once. A breaker that refuses instead of holding does not wait for that.
    pub(super) fn may_start_probe(&self, ticket: Ticket, now: Timestamp) -> bool {
        self.refuses() || self.with_sealed(now).admission(now) == Admission::Go(ticket)
    }

    pub(super) fn refuses(&self) -> bool {
        self.state.settings.when_open == WhenOpen::Fail
    }

    /// Adds a record that is on disk; returns its transitions.
    pub(super) fn add_record(&mut self, version: u64, record: &BreakerRecord) -> Vec<BreakerChange> {
        self.journal.add(version, record);
        let fresh = self.journal.changes.iter();
        let fresh = fresh.filter(|(at, change)| *at == Some(version) && change.change.is_transition());
        let fresh = fresh.map(|(_, change)| change.clone()).collect();
        let changes = &mut self.journal.changes;
        changes.retain(|(_, change)| change.change.is_transition());
        let count = changes.len().saturating_sub(HISTORY);
        changes.drain(..count);
        self.is_stale = true;
        fresh
    }

    pub(super) fn position(&self, job: Option<&str>, seq: Option<u64>) -> Option<usize> {
        let own = |it: &SealedFacts| it.record.job.as_deref() == job && it.record.seq == seq;
        self.sealed.iter().position(own).filter(|_| job.is_some())
    }
}
