//! The state of one breaker, and what changes it.

use undaunted_policy::{
    Admission, Breaker, BreakerSettings, Health, Phase, Ticket, Timestamp, Transition,
};

use super::record::Change;

/// A breaker as its journal has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakerState {
    /// When it opens, and for how long.
    pub settings: BreakerSettings,
    /// Where it stands.
    pub breaker: Breaker,
    /// Who finds out whether the target is back, while somebody does.
    pub probe: Option<Probe>,
}

/// Who finds out whether a target is back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The job whose attempt it is.
    pub job: String,
    /// Since when.
    pub since: Timestamp,
}

/// What the end of an attempt says about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Whether it is there.
    Health(Health),
    /// A rule of the command says that it is not.
    Trip,
}

impl BreakerState {
    /// A breaker that nobody has asked yet.
    #[must_use]
    pub fn with(settings: BreakerSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Whether it is open or half open.
    #[must_use]
    pub const fn is_shut(&self) -> bool {
        !matches!(self.breaker.phase(), Phase::Closed { .. })
    }

    /// Whether a start may go ahead now. Asking changes nothing.
    #[must_use]
    pub fn admission(&self, now: Timestamp) -> Admission {
        let mut asked = self.breaker;
        asked.admit(&self.settings, now).0
    }

    /// A start that was let through is made by a job.
    pub fn start(&mut self, job: &str, ticket: Ticket, now: Timestamp) -> Option<Change> {
        if !ticket.probe {
            return None;
        }
        let (_, transition) = self.breaker.admit(&self.settings, now);
        self.probe = Some(Probe {
            job: job.to_owned(),
            since: now,
        });
        Some(match transition {
            Some(_) => Change::HalfOpened,
            None => Change::Probed,
        })
    }

    /// Takes in what the end of an attempt says. Nothing, if that changes nothing.
    pub fn report(&mut self, ticket: Ticket, signal: Signal, now: Timestamp) -> Option<Change> {
        if !self.breaker.counts(ticket) {
            return None;
        }
        let before = self.breaker.phase();
        let change = match signal {
            Signal::Trip => {
                self.breaker.trip(&self.settings, now);
                Change::Tripped
            }
            Signal::Health(health) => {
                let transition = self.breaker.report(&self.settings, ticket, health, now);
                match (transition, health) {
                    (Some(Transition::Opened { .. }), _) => Change::Opened,
                    (Some(Transition::Closed), _) => Change::Closed,
                    (Some(Transition::HalfOpened) | None, Health::Up) if ticket.probe => {
                        Change::ProbeSucceeded
                    }
                    (_, Health::Up) => Change::Succeeded,
                    (_, Health::Down) => Change::Failed,
                    (_, Health::Unknown) => Change::ProbeLost,
                }
            }
        };
        if before == self.breaker.phase() {
            return None;
        }
        self.probe = None;
        Some(change)
    }

    /// Somebody opens it by hand.
    pub fn trip(&mut self, now: Timestamp) -> Change {
        self.breaker.trip(&self.settings, now);
        self.probe = None;
        Change::Tripped
    }

    /// It was open elsewhere, and is here.
    pub fn open(&mut self, since: Timestamp, until: Timestamp) -> Change {
        let generation = self.breaker.generation().wrapping_add(1);
        self.breaker = Breaker::restored(Phase::Open { since, until }, generation);
        self.probe = None;
        Change::Tripped
    }

    /// Somebody closes it by hand.
    pub fn reset(&mut self) -> Change {
        self.breaker.reset();
        self.probe = None;
        Change::Reset
    }

    /// Whoever made the probe is gone, and its result is not waited for.
    pub fn abandon_probe(&mut self) -> Change {
        self.breaker.abandon_probe();
        self.probe = None;
        Change::ProbeLost
    }

    /// The same, open for no longer than it ever is, however the clock was set meanwhile.
    #[must_use]
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
    #[must_use]
    pub const fn failures(&self) -> u32 {
        match self.breaker.phase() {
            Phase::Closed { failures } => failures,
            Phase::Open { .. } | Phase::HalfOpen { .. } => 0,
        }
    }

    /// The word for where it stands.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.breaker.phase() {
            Phase::Closed { .. } => "closed",
            Phase::Open { .. } => "open",
            Phase::HalfOpen { .. } => "half_open",
        }
    }

    /// When it lets the next start through, while it is open.
    #[must_use]
    pub const fn until(&self) -> Option<Timestamp> {
        match self.breaker.phase() {
            Phase::Open { until, .. } => Some(until),
            Phase::Closed { .. } | Phase::HalfOpen { .. } => None,
        }
    }
}
