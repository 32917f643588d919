//! [`AdmissionControl`]: decides which starts a breaker admits, which jobs wait for it, which one probes, and
//! which to wake.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{Admission, CircuitState, Ticket, Timestamp};

use super::admission::AdmissionControl;
use super::release::StaggeredRelease;
use super::state::Probe;
use super::tracked::{ProbeOffer, ProbeOwner, StartAllowance, TrackedBreaker};

/// The answer of a breaker to an attempt that is about to start; part of the input that starts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BreakerAnswer {
    #[default]
    NoBreaker,
    Admitted {
        breaker: Arc<str>,
        /// Returned to the breaker with the result.
        ticket: Ticket,
    },
    /// The attempt waits; it uses no attempt, budget or slot.
    Held {
        breaker: Arc<str>,
        /// When the next probe may start, while the breaker is open.
        until: Option<Timestamp>,
        longest: Option<Duration>,
    },
    /// The command stops with `circuit_open`.
    Refused { breaker: Arc<str> },
}

impl AdmissionControl {
    /// Whether an attempt may start. `left` is how many attempts its item has left, or `None` if another item
    /// of the job should probe first. Registers the job as a user.
    pub fn admit(&mut self, name: &Arc<str>, job: &Arc<str>, left: Option<u64>) -> BreakerAnswer {
        self.add_user(name, job);
        let now = self.now;
        let breaker = Arc::clone(name);
        let Some(known) = self.breakers.get_mut(name) else {
            let ticket = Ticket::restored(0, false);
            return BreakerAnswer::Admitted { breaker, ticket };
        };
        let held = |known: &TrackedBreaker| BreakerAnswer::Held {
            breaker: Arc::clone(name),
            until: known.state.until(),
            longest: known.state.settings.max_hold,
        };
        match known.state.admission(now) {
            Admission::Go(ticket) if ticket.probe => {
                let ours = known.prober == ProbeOwner::Ours;
                let best = known.ranking.first().map(|(Reverse(best), _)| *best);
                let first = left.is_some_and(|left| best.is_none_or(|best| best <= left));
                match (ours, known.refuses()) {
                    (true, true) => BreakerAnswer::Admitted { breaker, ticket },
                    (true, false) if first && known.may_start_probe(ticket, now) => {
                        BreakerAnswer::Admitted { breaker, ticket }
                    }
                    (false, true) => BreakerAnswer::Refused { breaker },
                    (_, false) => held(known),
                }
            }
            Admission::Go(ticket) => BreakerAnswer::Admitted { breaker, ticket },
            Admission::Held { .. } => held(known),
            Admission::Refused => BreakerAnswer::Refused { breaker },
        }
    }

    pub fn allowance(&self, name: &str, job: &str) -> StartAllowance {
        let Some(known) = self.breakers.get(name) else { return StartAllowance::Admits(u32::MAX) };
        match known.state.admission(self.now) {
            Admission::Go(ticket) if ticket.probe => match known.prober {
                ProbeOwner::Others if known.refuses() => StartAllowance::Refuses,
                ProbeOwner::Ours | ProbeOwner::Unclaimed if known.may_start_probe(ticket, self.now) => {
                    StartAllowance::AdmitsProbe
                }
                ProbeOwner::Others | ProbeOwner::Ours | ProbeOwner::Unclaimed => StartAllowance::Holds,
            },
            Admission::Go(_) => {
                let release = known.releases.get(job);
                StartAllowance::Admits(release.map_or(u32::MAX, |release| release.allowed(self.now)))
            }
            Admission::Held { .. } => StartAllowance::Holds,
            Admission::Refused => StartAllowance::Refuses,
        }
    }

    /// Whether an item with this many attempts left may probe: no other job has one with more.
    pub fn ranks_first(&self, name: &str, left: u64) -> bool {
        let best = self.breakers.get(name).and_then(|known| known.ranking.first());
        best.is_none_or(|(Reverse(best), _)| *best <= left)
    }

    /// Whether starts fail while the breaker is open, instead of being held.
    pub fn refuses(&self, name: &str) -> bool {
        self.breakers.get(name).is_some_and(TrackedBreaker::refuses)
    }

    /// When the breaker admits more of a job by itself: its next probe or release.
    pub fn next_admission(&self, name: &str, job: &str) -> Option<Timestamp> {
        let known = self.breakers.get(name)?;
        let release = known.releases.get(job).and_then(StaggeredRelease::next);
        known.state.until().or(release)
    }

    /// Replaces the offers of a job.
    pub fn set_offers(&mut self, job: &Arc<str>, offers: &BTreeMap<Arc<str>, ProbeOffer>) {
        let names = self.jobs.get(job).into_iter().flatten();
        let gone = names.filter(|name| !offers.contains_key(*name)).cloned();
        for name in gone.collect::<Vec<_>>() {
            self.withdraw_offer(&name, job);
        }
        for (name, offer) in offers {
            self.add_user(name, job);
            let Some(known) = self.breakers.get_mut(name) else { continue };
            self.awaited.insert(Arc::clone(name));
            let first = known.ranking.first().cloned();
            if let Some(before) = known.waiting.insert(Arc::clone(job), *offer)
                && let Some(left) = before.left
            {
                known.ranking.remove(&(Reverse(left), Arc::clone(job)));
            }
            if let Some(left) = offer.left {
                known.ranking.insert((Reverse(left), Arc::clone(job)));
            }
            if !known.state.is_open_or_half_open() && offer.held > 0 && !known.releases.contains_key(job) {
                let timeout = known.state.settings.recovery_timeout;
                let release = StaggeredRelease::new(self.now, timeout, offer.held, offer.draw);
                known.releases.insert(Arc::clone(job), release);
            }
            if known.state.is_open_or_half_open() && known.ranking.first() != first.as_ref() {
                self.changed.insert(Arc::clone(name));
            }
        }
    }

    pub(super) fn withdraw_offer(&mut self, name: &Arc<str>, job: &Arc<str>) {
        let Some(known) = self.breakers.get_mut(name) else { return };
        known.releases.remove(job);
        let offer = known.waiting.remove(job);
        if known.waiting.is_empty() {
            self.awaited.remove(name);
        }
        if let Some(left) = offer.and_then(|offer| offer.left) {
            known.ranking.remove(&(Reverse(left), Arc::clone(job)));
            if known.state.is_open_or_half_open() {
                self.changed.insert(Arc::clone(name));
            }
        }
    }

    pub fn probe_owner(&self, name: &str) -> ProbeOwner {
        self.breakers.get(name).map_or(ProbeOwner::Unclaimed, |it| it.prober)
    }

    pub fn set_probe_owner(&mut self, name: &Arc<str>, prober: ProbeOwner) {
        if let Some(known) = self.breakers.get_mut(name) {
            let before = std::mem::replace(&mut known.prober, prober);
            if before == ProbeOwner::Others && prober != ProbeOwner::Others {
                self.changed.insert(Arc::clone(name));
            }
            // Our claim may have been the only reason to keep a breaker without users. A breaker that no job has
            // asked yet is kept, because an unknown breaker admits everything.
            let gave_up_claim = before == ProbeOwner::Ours && prober != ProbeOwner::Ours;
            if gave_up_claim && known.users.is_empty() {
                self.breakers.remove(name);
            }
        }
    }

    /// When the first awaited breaker may be probed.
    pub fn next_probe(&self) -> Option<Timestamp> {
        let awaited = self.awaited.iter().filter_map(|name| self.breakers.get(name));
        let until = awaited.filter(|it| !it.ranking.is_empty()).filter_map(|it| it.state.until());
        until.filter(|until| *until > self.now).min()
    }

    /// Wakes the first-ranked job of every breaker whose recovery timeout has passed, once per opening.
    pub fn wake_due_probers(&mut self) {
        for name in &self.awaited {
            let Some(known) = self.breakers.get_mut(name) else { continue };
            let generation = known.state.breaker.generation();
            let passed = known.state.until().is_some_and(|until| until <= self.now);
            if passed && !known.ranking.is_empty() && known.announced != Some(generation) {
                known.announced = Some(generation);
                self.changed.insert(Arc::clone(name));
            }
        }
    }

    pub fn may_probe(&self, name: &str) -> bool {
        self.breakers.get(name).is_some_and(|it| it.may_probe(self.now))
    }

    pub const fn awaited(&self) -> &BTreeSet<Arc<str>> {
        &self.awaited
    }

    /// Whether this process still needs its probe claim: one of its jobs waits or probes.
    pub fn needs_claim(&self, name: &str) -> bool {
        self.breakers.get(name).is_some_and(|known| {
            let own = |probe: &Probe| known.users.contains(&*probe.job);
            let probes = known.state.probe.as_ref().is_some_and(own);
            let waits = known.state.is_open_or_half_open() && !known.ranking.is_empty();
            known.prober == ProbeOwner::Ours && (probes || waits)
        })
    }

    /// Whether no breaker holds or releases items, so that the caller may reset the clock.
    pub fn is_idle(&self) -> bool {
        self.breakers.values().all(|it| !it.state.is_open_or_half_open() && it.releases.is_empty())
    }

    /// The jobs to wake since the last call: all that wait for a closed breaker, and the first-ranked one of
    /// a breaker that may be probed.
    pub fn take_jobs_to_wake(&mut self) -> BTreeSet<Arc<str>> {
        let mut jobs = BTreeSet::new();
        for name in std::mem::take(&mut self.changed) {
            let Some(known) = self.breakers.get(&name) else { continue };
            if matches!(known.state.breaker.circuit(), CircuitState::Closed { .. }) || known.refuses() {
                jobs.extend(known.waiting.keys().cloned());
            } else if known.may_probe(self.now) && known.prober != ProbeOwner::Others {
                jobs.extend(known.ranking.first().map(|(_, job)| Arc::clone(job)));
            }
        }
        jobs
    }
}
