//! A circuit breaker: after enough failures in a row, stop calling and look again later.
//!
//! One breaker stands for one target. It is a value: [`Breaker::admit`] is asked before every start
//! and [`Breaker::report`] is told every result, both with the time. It neither waits nor wakes
//! anybody; what is held, and in which order it goes on, is the caller's business.

use core::time::Duration;

use crate::failure::{FailureCause, FailureClass};
use crate::timestamp::Timestamp;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct BreakerSettings {
    /// Failures in a row that open it (0 counts as 1).
    pub failure_threshold: u32,
    /// How long it stays open before it lets one call through.
    pub recovery_timeout: Duration,
    /// Successes in a row that close it again (0 counts as 1).
    pub half_open_max_calls: u32,
    /// What becomes of a start while it is open.
    pub when_open: WhenOpen,
    /// How long a start may be held, at most.
    pub max_hold: Option<Duration>,
}

impl BreakerSettings {
    /// Opens after 5 failures for 60s, closes after 3 successes, holds.
    pub const DEFAULT: Self = Self {
        failure_threshold: 5,
        recovery_timeout: Duration::from_mins(1),
        half_open_max_calls: 3,
        when_open: WhenOpen::Hold,
        max_hold: None,
    };
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What becomes of a start while the breaker is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum WhenOpen {
    /// It waits; no attempt and no budget is used.
    #[default]
    Hold,
    /// It fails with `circuit_open`; no attempt is used.
    Fail,
}

/// The breaker of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Breaker {
    phase: CircuitState,
    /// Rises with every opening: results of starts from before it are told from later ones.
    generation: u32,
}

/// Where a breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum CircuitState {
    /// Everything passes.
    Closed {
        /// Failures in a row.
        failures: u32,
    },
    /// Nothing passes.
    Open {
        /// Since then.
        since: Timestamp,
        /// Until then.
        until: Timestamp,
    },
    /// One call at a time passes.
    HalfOpen {
        /// Calls that have succeeded.
        successes: u32,
        /// Whether one is under way.
        probing: bool,
    },
}

impl Default for CircuitState {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// Whether a start may go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may. The ticket is handed back with the result.
    Go(Ticket),
    /// It waits. While the breaker is open, until this instant; while a probe is under way, until
    /// that has ended.
    Held {
        /// When the breaker lets the next call through, if that is known.
        until: Option<Timestamp>,
    },
    /// It fails with `circuit_open`.
    Refused,
}

/// Tells which start a result belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Ticket {
    generation: u32,
    /// Whether this start finds out if the target is back.
    pub probe: bool,
}

/// What a result says about the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// It answers.
    Up,
    /// It does not.
    Down,
    /// Nothing.
    Unknown,
}

impl Health {
    /// What a failure says about its target.
    #[must_use]
    pub const fn of_failure(cause: FailureCause, class: FailureClass) -> Self {
        match (cause, cause.class(), class) {
            (FailureCause::Interrupted, ..) => Self::Unknown,
            // A target that cannot be reached, does not answer in time or fails is down, whether or
            // not the policy retries that.
            (_, FailureClass::Transient | FailureClass::Throttled, _)
            | (_, _, FailureClass::Transient | FailureClass::Throttled) => Self::Down,
            // Whoever answers, be it "you may not" or nonsense, is there.
            (FailureCause::Status(_) | FailureCause::Refused | FailureCause::Unreadable, ..) => Self::Up,
            _ => Self::Unknown,
        }
    }
}

/// A change of phase, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It opened.
    Opened {
        /// Until then.
        until: Timestamp,
    },
    /// It lets one call at a time through.
    HalfOpened,
    /// It closed.
    Closed,
}

impl Ticket {
    /// The ticket of a start that was made in this generation.
    #[must_use]
    pub const fn restored(generation: u32, probe: bool) -> Self {
        Self { generation, probe }
    }

    /// How often the breaker had opened before the start.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl Breaker {
    /// A breaker as it was kept somewhere.
    #[must_use]
    pub const fn restored(phase: CircuitState, generation: u32) -> Self {
        Self { phase, generation }
    }

    /// Where it stands.
    #[must_use]
    pub const fn circuit(&self) -> CircuitState {
        self.phase
    }

    /// Rises with every opening.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether the result of a start counts: one from before an opening does not.
    #[must_use]
    pub const fn counts(&self, ticket: Ticket) -> bool {
        ticket.generation == self.generation
    }

    /// Asks whether a start may go ahead; it is then under way. The first start after the recovery
    /// timeout half-opens the breaker.
    pub fn admit(&mut self, settings: &BreakerSettings, now: Timestamp) -> (Admission, Option<Transition>) {
        match self.phase {
            CircuitState::Closed { .. } => (self.go(false), None),
            CircuitState::Open { until, .. } if now < until => (closed_to(settings, Some(until)), None),
            CircuitState::HalfOpen { probing: true, .. } => (closed_to(settings, None), None),
            CircuitState::Open { .. } => (self.probe(0), Some(Transition::HalfOpened)),
            CircuitState::HalfOpen { successes, .. } => (self.probe(successes), None),
        }
    }

    /// Takes in the result of a start.
    pub fn report(
        &mut self,
        settings: &BreakerSettings,
        ticket: Ticket,
        health: Health,
        now: Timestamp,
    ) -> Option<Transition> {
        if !self.counts(ticket) {
            return None;
        }
        match (self.phase, health) {
            (CircuitState::Closed { .. }, Health::Up) => {
                self.phase = CircuitState::default();
                None
            }
            (CircuitState::Closed { failures }, Health::Down) => {
                let failures = failures.saturating_add(1);
                if failures >= settings.failure_threshold {
                    return Some(self.trip(settings, now));
                }
                self.phase = CircuitState::Closed { failures };
                None
            }
            (CircuitState::HalfOpen { successes, .. }, Health::Up) if ticket.probe => {
                let successes = successes.saturating_add(1);
                if successes >= settings.half_open_max_calls {
                    self.phase = CircuitState::default();
                    return Some(Transition::Closed);
                }
                self.phase = half_open(successes, false);
                None
            }
            (CircuitState::HalfOpen { .. }, Health::Down) if ticket.probe => Some(self.trip(settings, now)),
            (CircuitState::HalfOpen { successes, .. }, Health::Unknown) if ticket.probe => {
                self.phase = half_open(successes, false);
                None
            }
            _ => None,
        }
    }

    /// Opens it now, whatever its count.
    pub fn trip(&mut self, settings: &BreakerSettings, now: Timestamp) -> Transition {
        let until = now.after(settings.recovery_timeout);
        self.generation = self.generation.wrapping_add(1);
        self.phase = CircuitState::Open { since: now, until };
        Transition::Opened { until }
    }

    /// Closes it now; what is under way no longer counts.
    pub fn reset(&mut self) -> Transition {
        self.generation = self.generation.wrapping_add(1);
        self.phase = CircuitState::default();
        Transition::Closed
    }

    /// Gives up a probe whose result is not waited for, because whoever made it is gone. Should it come
    /// all the same it no longer counts: by then somebody else may probe.
    pub fn abandon_probe(&mut self) {
        if let CircuitState::HalfOpen { probing, .. } = &mut self.phase {
            *probing = false;
            self.generation = self.generation.wrapping_add(1);
        }
    }

    fn probe(&mut self, successes: u32) -> Admission {
        self.phase = half_open(successes, true);
        self.go(true)
    }

    const fn go(&self, probe: bool) -> Admission {
        Admission::Go(Ticket { generation: self.generation, probe })
    }
}

const fn half_open(successes: u32, probing: bool) -> CircuitState {
    CircuitState::HalfOpen { successes, probing }
}

const fn closed_to(settings: &BreakerSettings, until: Option<Timestamp>) -> Admission {
    match settings.when_open {
        WhenOpen::Hold => Admission::Held { until },
        WhenOpen::Fail => Admission::Refused,
    }
}

#[cfg(test)]
mod tests;
