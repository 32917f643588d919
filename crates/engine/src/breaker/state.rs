//! The state of one breaker: the fold of its facts.

use undaunted_policy::{
    Admission, Breaker, BreakerSettings, CircuitState, Health, Ticket, Timestamp, Transition,
};

use super::record::{BreakerFact, BreakerRecord};
use super::report::TargetSignal;
use crate::event::codec;
use crate::mutant::{self, Mutant};
use crate::stored::stored;

/// Bounds the loop over the failures of one fact, whose number a damaged journal may make large.
const MAX_FAILURES: u32 = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakerState {
    pub settings: BreakerSettings,
    pub breaker: Breaker,
    pub probe: Option<Probe>,
    /// While it is not closed: the failures that opened it, and those since.
    pub failures_since: u32,
    pub last_failure_at: Option<Timestamp>,
}

stored! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Probe {
        pub job: String = 0,
        pub since: Timestamp = 1 with "codec::time",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerChange {
    pub at: Timestamp,
    pub change: BreakerChangeKind,
    /// `None` if an operator changed it.
    pub job: Option<String>,
    /// The length of that job's journal after the commit that contains this fact.
    pub seq: Option<u64>,
    /// Consecutive failures that opened it; 0 if a probe, a rule or an operator did.
    pub failures: u32,
    pub state: BreakerState,
}

stored! {
    /// The numbers are part of the stored format: never change or reuse them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BreakerChangeKind {
        Configured = 0 => "configured",
        Failed = 1 => "failure",
        /// Resets the failure count.
        Succeeded = 2 => "success",
        /// After consecutive failures or a failed probe.
        Opened = 3 => "opened",
        /// By a rule or an operator.
        Tripped = 4 => "tripped",
        /// The recovery timeout has passed and the first probe starts.
        HalfOpened = 5 => "half_opened",
        Probed = 6 => "probe",
        /// More successes are needed to close.
        ProbeSucceeded = 7 => "probe_succeeded",
        /// The probe ended without saying anything about the target.
        ProbeLost = 8 => "probe_lost",
        Closed = 9 => "closed",
        /// By an operator.
        Reset = 10 => "reset",
    }
}

impl BreakerChangeKind {
    pub const fn is_transition(self) -> bool {
        matches!(self, Self::Opened | Self::Tripped | Self::HalfOpened | Self::Closed | Self::Reset)
    }
}

impl BreakerState {
    pub fn with_settings(settings: BreakerSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// The only function that changes a breaker. Returns what changed.
    pub fn apply(&mut self, record: &BreakerRecord) -> Vec<BreakerChange> {
        let changes = record.facts.iter().filter_map(|fact| {
            let mut change = self.apply_fact(record.job.as_deref(), fact)?;
            change.seq = record.seq;
            Some(change)
        });
        changes.collect()
    }

    pub(super) fn apply_fact(&mut self, job: Option<&str>, fact: &BreakerFact) -> Option<BreakerChange> {
        let before = self.failures();
        let was_closed = !self.is_open_or_half_open();
        let (at, change) = match fact {
            BreakerFact::Configured { at, settings } => {
                if self.settings == *settings {
                    return None;
                }
                self.settings = *settings;
                (*at, BreakerChangeKind::Configured)
            }
            BreakerFact::Reported { at, generation, probe, signal, many } => {
                let ticket = Ticket::restored(*generation, *probe);
                (*at, self.report(ticket, *signal, *many, *at)?)
            }
            BreakerFact::Probed { at, generation } => (*at, self.probed(job, *generation, *at)?),
            BreakerFact::ProbeLost { at, generation } => {
                let known = Ticket::restored(*generation, true);
                if !self.is_probing() || !self.breaker.counts(known) {
                    return None;
                }
                self.breaker.abandon_probe();
                (*at, BreakerChangeKind::ProbeLost)
            }
            BreakerFact::Tripped { at } => {
                self.breaker.trip(&self.settings, *at);
                (*at, BreakerChangeKind::Tripped)
            }
            BreakerFact::Reset { at } => {
                self.breaker.reset();
                (*at, BreakerChangeKind::Reset)
            }
            BreakerFact::Imported { since, until } => {
                let (since, until) = (*since, *until);
                let generation = self.breaker.generation().wrapping_add(1);
                self.breaker = Breaker::restored(CircuitState::Open { since, until }, generation);
                (since, BreakerChangeKind::Tripped)
            }
            BreakerFact::Restored { at, circuit, failures, last_failure_at } => {
                let generation = self.breaker.generation().wrapping_add(1);
                self.breaker = Breaker::restored(*circuit, generation);
                self.failures_since = *failures;
                self.last_failure_at = last_failure_at.or(self.last_failure_at);
                let change = match circuit {
                    CircuitState::Closed { .. } => BreakerChangeKind::Failed,
                    CircuitState::Open { .. } => BreakerChangeKind::Tripped,
                    CircuitState::HalfOpen { .. } => BreakerChangeKind::HalfOpened,
                };
                (*at, change)
            }
            BreakerFact::State(change) => {
                *self = change.state.clone();
                return Some(BreakerChange::clone(change));
            }
            BreakerFact::Folded { .. } => return None,
        };
        if !self.is_probing() {
            self.probe = None;
        }
        let counted = change == BreakerChangeKind::Opened && was_closed;
        Some(BreakerChange {
            at,
            change,
            job: job.map(str::to_owned),
            seq: None,
            failures: if counted { self.settings.failure_threshold.max(before.saturating_add(1)) } else { 0 },
            state: self.clone(),
        })
    }

    /// Ignores a probe from before the breaker opened again or an operator closed it.
    fn probed(&mut self, job: Option<&str>, generation: u32, at: Timestamp) -> Option<BreakerChangeKind> {
        let (successes, change) = match self.breaker.circuit() {
            _ if generation != self.breaker.generation() => return None,
            CircuitState::Closed { .. } => return None,
            CircuitState::Open { .. } => (0, BreakerChangeKind::HalfOpened),
            CircuitState::HalfOpen { successes, .. } => (successes, BreakerChangeKind::Probed),
        };
        let circuit = CircuitState::HalfOpen { successes, probing: true };
        self.breaker = Breaker::restored(circuit, generation);
        self.probe = Some(Probe { job: job.unwrap_or_default().to_owned(), since: at });
        Some(change)
    }

    /// Returns `None` if nothing changes.
    fn report(
        &mut self,
        ticket: Ticket,
        signal: TargetSignal,
        many: u32,
        at: Timestamp,
    ) -> Option<BreakerChangeKind> {
        if !self.breaker.counts(ticket) {
            return None;
        }
        let before = self.breaker.circuit();
        let failures = self.failure_count();
        let (health, many) = match signal {
            TargetSignal::Trip => {
                self.note_failures(failures.saturating_add(1), at);
                self.breaker.trip(&self.settings, at);
                return Some(BreakerChangeKind::Tripped);
            }
            TargetSignal::Up => (Health::Up, 1),
            TargetSignal::Unknown => (Health::Unknown, 1),
            TargetSignal::Down => (Health::Down, many.min(MAX_FAILURES)),
        };
        let (mut transition, mut counted) = (None, 0_u32);
        for _ in 0..many {
            counted = counted.saturating_add(1);
            // Once it has opened, the remaining failures are from before the opening.
            transition = self.breaker.report(&self.settings, ticket, health, at);
            if transition.is_some() {
                break;
            }
        }
        if before == self.breaker.circuit() {
            return None;
        }
        if health == Health::Down {
            self.note_failures(failures.saturating_add(counted), at);
        }
        Some(match (transition, health) {
            (Some(Transition::Opened { .. }), _) => BreakerChangeKind::Opened,
            (Some(Transition::Closed), _) => BreakerChangeKind::Closed,
            (_, Health::Up) if ticket.probe => BreakerChangeKind::ProbeSucceeded,
            (_, Health::Up) => BreakerChangeKind::Succeeded,
            (_, Health::Down) => BreakerChangeKind::Failed,
            (_, Health::Unknown) => BreakerChangeKind::ProbeLost,
        })
    }

    fn note_failures(&mut self, many: u32, at: Timestamp) {
        self.failures_since = many;
        self.last_failure_at = Some(at);
    }

    pub const fn is_open_or_half_open(&self) -> bool {
        !matches!(self.breaker.circuit(), CircuitState::Closed { .. })
    }

    pub const fn is_probing(&self) -> bool {
        matches!(self.breaker.circuit(), CircuitState::HalfOpen { probing: true, .. })
    }

    /// Whether an attempt may start. Asking changes nothing.
    pub fn admission(&self, now: Timestamp) -> Admission {
        if mutant::is(Mutant::BreakerIgnored) {
            return Admission::Go(Ticket::restored(self.breaker.generation(), false));
        }
        let mut copy = self.breaker;
        copy.admit(&self.settings, now).0
    }

    /// The probe under way, if it has taken longer than the recovery timeout.
    pub fn overdue_probe(&self, now: Timestamp) -> Option<&Probe> {
        let overdue = |probe: &&Probe| probe.since.after(self.settings.recovery_timeout) <= now;
        self.probe.as_ref().filter(overdue)
    }

    /// If the clock was set back, the opening lies in the future; moves it to now, so it lasts no longer than its
    /// recovery timeout.
    pub fn clamped(mut self, now: Timestamp) -> Self {
        let longest = now.after(self.settings.recovery_timeout);
        if let CircuitState::Open { since, until } = self.breaker.circuit()
            && until > longest
            && since > now
        {
            let circuit = CircuitState::Open { since: now, until: longest };
            self.breaker = Breaker::restored(circuit, self.breaker.generation());
        }
        self
    }

    /// Consecutive failures, counted while closed.
    pub const fn failures(&self) -> u32 {
        match self.breaker.circuit() {
            CircuitState::Closed { failures } => failures,
            CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => 0,
        }
    }

    /// Failures since the last success that counted, those that opened it included.
    pub const fn failure_count(&self) -> u32 {
        match self.breaker.circuit() {
            CircuitState::Closed { failures } => failures,
            CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => self.failures_since,
        }
    }

    pub const fn word(&self) -> &'static str {
        match self.breaker.circuit() {
            CircuitState::Closed { .. } => "closed",
            CircuitState::Open { .. } => "open",
            CircuitState::HalfOpen { .. } => "half_open",
        }
    }

    /// When the next probe may start, while open.
    pub const fn until(&self) -> Option<Timestamp> {
        match self.breaker.circuit() {
            CircuitState::Open { until, .. } => Some(until),
            CircuitState::Closed { .. } | CircuitState::HalfOpen { .. } => None,
        }
    }
}
