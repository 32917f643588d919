//! One breaker as a process sees it: what is on the disk, what is being written, and what waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{Admission as Answer, Ticket, Timestamp, WhenOpen};

use super::journal::{BreakerJournal, HISTORY};
use super::record::{BreakerRecord, Fact};
use super::release::Release;
use super::state::{BreakerChange, BreakerState};

#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// What is on the disk.
    pub(super) journal: BreakerJournal,
    /// Facts that were handed over to be written, oldest first.
    pub(super) sealed: VecDeque<Sealed>,
    /// Facts that were not handed over yet, by job.
    pub(super) open: BTreeMap<Arc<str>, Vec<Fact>>,
    /// All of that together: what decisions are made by.
    pub(super) state: BreakerState,
    /// The generation on the disk, and when this process first saw it.
    pub(super) first_seen: Option<(u32, Timestamp)>,
    /// Whether `state` has to be put together again.
    pub(super) is_stale: bool,
    pub(super) prober: Prober,
    /// The opening after which the job that goes first was awakened.
    pub(super) announced: Option<u32>,
    /// What waits, by job.
    pub(super) waiting: BTreeMap<Arc<str>, Offer>,
    /// The jobs with an item that could probe, the one with the most attempts left first.
    pub(super) ranking: BTreeSet<(Reverse<u64>, Arc<str>)>,
    /// How held items of each job are let go since the breaker has closed.
    pub(super) releases: BTreeMap<Arc<str>, Release>,
    /// The jobs that use it.
    pub(super) users: BTreeSet<Arc<str>>,
}

/// Facts that were handed over to be written.
#[derive(Clone, Debug)]
pub(super) struct Sealed {
    pub(super) record: BreakerRecord,
    /// They are on the disk, at this version at the latest, behind facts of others that are not known.
    pub(super) reached: Option<u64>,
}

/// Which process makes the probes of a breaker: the one that holds the claim `probe/NAME`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prober {
    /// None that is known of; this process may try to claim it.
    #[default]
    Unclaimed,
    Ours,
    Others,
}

/// What a job has waiting for a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// How many of its items the breaker holds.
    pub held: u32,
    /// How many attempts the item has left that would probe; none if no item could start now.
    pub left: Option<u64>,
    /// Spreads the releases of different jobs.
    pub draw: u64,
}

/// What a breaker lets through now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Openness {
    Passes(u32),
    /// One start, to find out whether the target is back.
    Probes,
    Holds,
    Refuses,
}

impl Known {
    /// Puts the state together again, if something has become known since. Whether it has changed.
    pub(super) fn refresh(&mut self, now: Timestamp) -> bool {
        if !std::mem::take(&mut self.is_stale) {
            return false;
        }
        let before = self.state.clone();
        let generation = self.journal.state.breaker.generation();
        if self.first_seen.is_none_or(|(of, _)| of != generation) {
            self.first_seen = Some((generation, now));
        }
        self.state = self.handed_over(now);
        if mutant::is(Mutant::OwnFactsIgnored) {
            self.state = self.on_disk(now);
            return self.follow(&before, now);
        }
        for (job, facts) in &self.open {
            for fact in facts {
                let _ = self.state.take(Some(job), fact);
            }
        }
        self.follow(&before, now)
    }

    /// The state when everything is written that was handed over.
    fn handed_over(&self, now: Timestamp) -> BreakerState {
        let mut state = self.on_disk(now);
        for sealed in &self.sealed {
            let _ = state.apply(&sealed.record);
        }
        state
    }

    /// The state on the disk. No opening is waited for longer than its recovery timeout, however the
    /// clock was set since: one that lies in the future began when it was first seen.
    fn on_disk(&self, now: Timestamp) -> BreakerState {
        let state = self.journal.state.clone();
        let generation = state.breaker.generation();
        let first_seen = self.first_seen.filter(|(of, _)| *of == generation);
        state.clamped(first_seen.map_or(now, |(_, at)| at))
    }

    /// The state was another one before: releases what is held if the breaker has closed. Whether it
    /// may let something start that it did not before.
    pub(super) fn follow(&mut self, before: &BreakerState, now: Timestamp) -> bool {
        if self.state.is_shut() {
            self.releases.clear();
        } else if before.is_shut() {
            let timeout = self.state.settings.recovery_timeout;
            let held = self.waiting.iter().filter(|(_, offer)| offer.held > 0);
            let releases = held.map(|(job, offer)| {
                let release = Release::new(now, timeout, offer.held, offer.draw);
                (Arc::clone(job), release)
            });
            self.releases = releases.collect();
        }
        before.breaker.phase() != self.state.breaker.phase()
            || before.settings != self.state.settings
    }

    /// Whether the next start would be a probe.
    pub(super) fn may_probe(&self, now: Timestamp) -> bool {
        let answer = self.state.admission(now);
        matches!(answer, Answer::Go(ticket) if ticket.probe && self.is_settled(ticket, now))
    }

    /// Whether a probe may start by what was handed over to be written, too; that is written in order.
    /// Facts that were not may be overtaken by those of other jobs: if a probe started before the result
    /// of the one before it was written, two would be under way. Where starts fail instead, they are not
    /// made to wait for that.
    pub(super) fn is_settled(&self, ticket: Ticket, now: Timestamp) -> bool {
        self.refuses() || self.handed_over(now).admission(now) == Answer::Go(ticket)
    }

    pub(super) fn refuses(&self) -> bool {
        self.state.settings.when_open == WhenOpen::Fail
    }

    /// Takes a record over that is on the disk.
    pub(super) fn stored(&mut self, version: u64, record: &BreakerRecord) -> Vec<BreakerChange> {
        self.journal.add(version, record);
        let fresh = self.journal.changes.iter();
        let fresh =
            fresh.filter(|(at, change)| *at == Some(version) && change.change.is_transition());
        let fresh = fresh.map(|(_, change)| change.clone()).collect();
        let changes = &mut self.journal.changes;
        changes.retain(|(_, change)| change.change.is_transition());
        let many = changes.len().saturating_sub(HISTORY);
        changes.drain(..many);
        self.is_stale = true;
        fresh
    }

    pub(super) fn position(&self, job: Option<&str>, seq: Option<u64>) -> Option<usize> {
        let own = |it: &Sealed| it.record.job.as_deref() == job && it.record.seq == seq;
        let found = self.sealed.iter().position(own);
        found.filter(|_| job.is_some())
    }
}
