//! The state of one breaker: what the facts of its journal come to.

use minicbor::{Decode, Encode};
use undaunted_policy::{
    Admission, Breaker, BreakerSettings, Health, Phase, Ticket, Timestamp, Transition,
};

use super::record::{BreakerRecord, Fact};
use super::report::Signal;

/// More failures in one fact than this are not counted one by one.
const MOST_AT_ONCE: u32 = 1 << 20;

/// A breaker, as its journal has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakerState {
    /// When it opens, and for how long.
    pub settings: BreakerSettings,
    /// Its phase and generation.
    pub breaker: Breaker,
    /// The probe that is under way, if one is.
    pub probe: Option<Probe>,
}

/// A probe that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The job whose attempt it is.
    pub job: String,
    pub since: Timestamp,
}

/// A change of a breaker, for people and observers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerChange {
    pub at: Timestamp,
    pub change: Change,
    /// The job that has changed it; none if an operator did by hand.
    pub job: Option<String>,
    /// How many records the journal of that job has with the commit that this is part of.
    pub seq: Option<u64>,
    /// Failures in a row that have opened it; none if a probe, a rule or an operator did.
    pub failures: u32,
    /// The state that this led to.
    pub state: BreakerState,
}

/// What changes a breaker. The numbers are those of the first stored format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Change {
    /// A submission gives it other settings.
    #[n(0)]
    Configured,
    /// An attempt has failed, and that is counted.
    #[n(1)]
    Failed,
    /// An attempt has succeeded, and the count starts again.
    #[n(2)]
    Succeeded,
    /// So many attempts have failed in a row that it opens, or a probe has failed.
    #[n(3)]
    Opened,
    /// A rule or an operator opens it.
    #[n(4)]
    Tripped,
    /// Its recovery timeout has passed, and the first probe starts.
    #[n(5)]
    HalfOpened,
    #[n(6)]
    Probed,
    /// A probe has succeeded, and more are needed.
    #[n(7)]
    ProbeSucceeded,
    /// A probe has ended without saying anything about the target.
    #[n(8)]
    ProbeLost,
    /// Enough probes have succeeded.
    #[n(9)]
    Closed,
    /// An operator closes it.
    #[n(10)]
    Reset,
}

impl Change {
    /// Whether it moves the breaker from one phase to another.
    pub const fn is_transition(self) -> bool {
        matches!(
            self,
            Self::Opened | Self::Tripped | Self::HalfOpened | Self::Closed | Self::Reset
        )
    }
}

impl BreakerState {
    /// A breaker without facts.
    pub fn with(settings: BreakerSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Applies the facts of a record: the only function that changes a breaker. Says what has changed.
    pub fn apply(&mut self, record: &BreakerRecord) -> Vec<BreakerChange> {
        let mut changes = Vec::new();
        for fact in &record.facts {
            let change = self.take(record.job.as_deref(), fact);
            changes.extend(change.map(|change| BreakerChange {
                seq: record.seq,
                ..change
            }));
        }
        changes
    }

    pub(super) fn take(&mut self, job: Option<&str>, fact: &Fact) -> Option<BreakerChange> {
        let before = self.failures();
        let was_closed = !self.is_shut();
        let (at, change) = match fact {
            Fact::Configured { at, settings } => {
                if self.settings == *settings {
                    return None;
                }
                self.settings = *settings;
                (*at, Change::Configured)
            }
            Fact::Reported {
                at,
                generation,
                probe,
                signal,
                many,
            } => {
                let ticket = Ticket::restored(*generation, *probe);
                (*at, self.report(ticket, *signal, *many, *at)?)
            }
            Fact::Probed { at, generation } => (*at, self.probed(job, *generation, *at)?),
            Fact::ProbeLost { at, generation } => {
                let known = Ticket::restored(*generation, true);
                if !self.is_probing() || !self.breaker.counts(known) {
                    return None;
                }
                self.breaker.abandon_probe();
                (*at, Change::ProbeLost)
            }
            Fact::Tripped { at } => {
                self.breaker.trip(&self.settings, *at);
                (*at, Change::Tripped)
            }
            Fact::Reset { at } => {
                self.breaker.reset();
                (*at, Change::Reset)
            }
            Fact::Imported { since, until } => {
                let (since, until) = (*since, *until);
                let generation = self.breaker.generation().wrapping_add(1);
                self.breaker = Breaker::restored(Phase::Open { since, until }, generation);
                (since, Change::Tripped)
            }
            Fact::State(change) => {
                *self = change.state.clone();
                return Some(BreakerChange::clone(change));
            }
            Fact::Folded { .. } => return None,
        };
        if !self.is_probing() {
            self.probe = None;
        }
        let counted = change == Change::Opened && was_closed;
        Some(BreakerChange {
            at,
            change,
            job: job.map(str::to_owned),
            seq: None,
            failures: if counted {
                self.settings
                    .failure_threshold
                    .max(before.saturating_add(1))
            } else {
                0
            },
            state: self.clone(),
        })
    }

    /// A probe starts. One that started before the breaker opened again, or was closed by hand, is
    /// none.
    fn probed(&mut self, job: Option<&str>, generation: u32, at: Timestamp) -> Option<Change> {
        let (successes, change) = match self.breaker.phase() {
            _ if generation != self.breaker.generation() => return None,
            Phase::Closed { .. } => return None,
            Phase::Open { .. } => (0, Change::HalfOpened),
            Phase::HalfOpen { successes, .. } => (successes, Change::Probed),
        };
        let probing = true;
        let phase = Phase::HalfOpen { successes, probing };
        self.breaker = Breaker::restored(phase, generation);
        self.probe = Some(Probe {
            job: job.unwrap_or_default().to_owned(),
            since: at,
        });
        Some(change)
    }

    /// Attempts have ended. Nothing, if that changes nothing.
    fn report(
        &mut self,
        ticket: Ticket,
        signal: Signal,
        many: u32,
        at: Timestamp,
    ) -> Option<Change> {
        if !self.breaker.counts(ticket) {
            return None;
        }
        let before = self.breaker.phase();
        let (health, many) = match signal {
            Signal::Trip => {
                self.breaker.trip(&self.settings, at);
                return Some(Change::Tripped);
            }
            Signal::Up => (Health::Up, 1),
            Signal::Unknown => (Health::Unknown, 1),
            Signal::Down => (Health::Down, many.min(MOST_AT_ONCE)),
        };
        let mut transition = None;
        for _ in 0..many {
            // Once it has opened, the others are from before the opening.
            transition = self.breaker.report(&self.settings, ticket, health, at);
            if transition.is_some() {
                break;
            }
        }
        if before == self.breaker.phase() {
            return None;
        }
        Some(match (transition, health) {
            (Some(Transition::Opened { .. }), _) => Change::Opened,
            (Some(Transition::Closed), _) => Change::Closed,
            (_, Health::Up) if ticket.probe => Change::ProbeSucceeded,
            (_, Health::Up) => Change::Succeeded,
            (_, Health::Down) => Change::Failed,
            (_, Health::Unknown) => Change::ProbeLost,
        })
    }

    /// Whether it is open or half open.
    pub const fn is_shut(&self) -> bool {
        !matches!(self.breaker.phase(), Phase::Closed { .. })
    }

    /// Whether a probe is under way.
    pub const fn is_probing(&self) -> bool {
        matches!(self.breaker.phase(), Phase::HalfOpen { probing: true, .. })
    }

    /// Whether a start may go ahead now. Asking changes nothing.
    pub fn admission(&self, now: Timestamp) -> Admission {
        let mut asked = self.breaker;
        asked.admit(&self.settings, now).0
    }

    /// The probe under way, if its result is overdue: as long as an outage is waited for.
    pub fn overdue_probe(&self, now: Timestamp) -> Option<&Probe> {
        let overdue = |probe: &&Probe| probe.since.after(self.settings.recovery_timeout) <= now;
        self.probe.as_ref().filter(overdue)
    }

    /// The same, open for no longer than its recovery timeout from now on, however the clock was set
    /// meanwhile.
    pub fn clamped(mut self, now: Timestamp) -> Self {
        let longest = now.after(self.settings.recovery_timeout);
        if let Phase::Open { since, until } = self.breaker.phase()
            && until > longest
            && since > now
        {
            let phase = Phase::Open {
                since: now,
                until: longest,
            };
            self.breaker = Breaker::restored(phase, self.breaker.generation());
        }
        self
    }

    /// Failures in a row that are counted while it is closed.
    pub const fn failures(&self) -> u32 {
        match self.breaker.phase() {
            Phase::Closed { failures } => failures,
            Phase::Open { .. } | Phase::HalfOpen { .. } => 0,
        }
    }

    /// The word for its phase.
    pub const fn word(&self) -> &'static str {
        match self.breaker.phase() {
            Phase::Closed { .. } => "closed",
            Phase::Open { .. } => "open",
            Phase::HalfOpen { .. } => "half_open",
        }
    }

    /// When the next probe may start, while it is open.
    pub const fn until(&self) -> Option<Timestamp> {
        match self.breaker.phase() {
            Phase::Open { until, .. } => Some(until),
            Phase::Closed { .. } | Phase::HalfOpen { .. } => None,
        }
    }
}
