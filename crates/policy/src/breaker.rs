//! A circuit breaker: after enough failures in a row it stops calls to a target and probes it later.
//!
//! One breaker stands for one target. It is a value: the caller asks [`Breaker::admit`] before every start
//! and passes every result to [`Breaker::report`], both with the time. The breaker neither waits nor wakes;
//! the caller holds starts and decides in which order to release them.

use core::time::Duration;

use crate::failure::{FailureCause, FailureClass};
use crate::timestamp::Timestamp;

/// The settings of a breaker: when it opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct BreakerSettings {
    /// Failures in a row that open the breaker (0 counts as 1).
    pub failure_threshold: u32,
    /// How long the breaker stays open before it admits a probe.
    pub recovery_timeout: Duration,
    /// Successes in a row that close the half-open breaker (0 counts as 1).
    pub half_open_max_calls: u32,
    /// Whether a start is held or refused while the breaker is open.
    pub when_open: WhenOpen,
    /// The longest time a start may be held.
    pub max_hold: Option<Duration>,
}

impl BreakerSettings {
    /// Opens after 5 failures for 60s, closes after 3 successes, holds starts meanwhile.
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

/// What happens to a start while the breaker is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum WhenOpen {
    /// The start is held; no attempt and no budget is used.
    #[default]
    Hold,
    /// The command fails with `circuit_open`; no attempt is used.
    Fail,
}

/// The breaker of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Breaker {
    phase: CircuitState,
    /// Rises with every opening, so that results of earlier starts can be ignored.
    generation: u32,
}

/// The state of a breaker: closed, open or half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum CircuitState {
    /// Every start is admitted.
    Closed {
        /// Failures in a row so far.
        failures: u32,
    },
    /// No start is admitted.
    Open {
        /// When the breaker opened.
        since: Timestamp,
        /// When the breaker admits a probe.
        until: Timestamp,
    },
    /// One probe at a time is admitted.
    HalfOpen {
        /// Probes that have succeeded.
        successes: u32,
        /// Whether a probe is running.
        probing: bool,
    },
}

impl Default for CircuitState {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// The answer of a breaker to a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The start is admitted. The caller passes the ticket back with the result.
    Go(Ticket),
    /// The start is held.
    Held {
        /// When the breaker admits a probe; `None` if it waits for the result of a running one.
        until: Option<Timestamp>,
    },
    /// The command fails with `circuit_open`.
    Refused,
}

/// Identifies the start to which a result belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Ticket {
    generation: u32,
    /// Whether this start probes if the target is back.
    pub probe: bool,
}

/// What a result says about the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// The target answers.
    Up,
    /// The target fails or does not answer.
    Down,
    /// The result says nothing about the target.
    Unknown,
}

impl Health {
    /// What a failure says about its target.
    #[must_use]
    pub const fn of_failure(cause: FailureCause, class: FailureClass) -> Self {
        match (cause, cause.class(), class) {
            (FailureCause::Interrupted, ..) => Self::Unknown,
            // An unreachable, slow or failing target is down, whether or not the policy retries that.
            (_, FailureClass::Transient | FailureClass::Throttled, _)
            | (_, _, FailureClass::Transient | FailureClass::Throttled) => Self::Down,
            // A target that answers is up, even if it refuses the request or breaks the protocol.
            (FailureCause::Status(_) | FailureCause::Refused | FailureCause::Unreadable, ..) => Self::Up,
            _ => Self::Unknown,
        }
    }
}

/// A change of state, for the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The breaker opened.
    Opened {
        /// When it admits a probe.
        until: Timestamp,
    },
    /// The breaker is half open and admits one probe at a time.
    HalfOpened,
    /// The breaker closed.
    Closed,
}

impl Ticket {
    /// Restores the ticket of a start that was admitted in this generation.
    #[must_use]
    pub const fn restored(generation: u32, probe: bool) -> Self {
        Self { generation, probe }
    }

    /// The generation of the breaker when the start was admitted.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl Breaker {
    /// Restores a breaker from a saved state.
    #[must_use]
    pub const fn restored(phase: CircuitState, generation: u32) -> Self {
        Self { phase, generation }
    }

    /// Whether the breaker is closed, open or half open.
    #[must_use]
    pub const fn circuit(&self) -> CircuitState {
        self.phase
    }

    /// A number that rises with every opening.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether the result of a start counts: the result of a start before the last opening does not.
    #[must_use]
    pub const fn counts(&self, ticket: Ticket) -> bool {
        ticket.generation == self.generation
    }

    /// Admits, holds or refuses a start. The first start after the recovery timeout half-opens the breaker.
    pub fn admit(&mut self, settings: &BreakerSettings, now: Timestamp) -> (Admission, Option<Transition>) {
        match self.phase {
            CircuitState::Closed { .. } => (self.go(false), None),
            CircuitState::Open { until, .. } if now < until => (closed_to(settings, Some(until)), None),
            CircuitState::HalfOpen { probing: true, .. } => (closed_to(settings, None), None),
            CircuitState::Open { .. } => (self.probe(0), Some(Transition::HalfOpened)),
            CircuitState::HalfOpen { successes, .. } => (self.probe(successes), None),
        }
    }

    /// Records the result of an admitted start.
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

    /// Opens the breaker now, whatever its count of failures.
    pub fn trip(&mut self, settings: &BreakerSettings, now: Timestamp) -> Transition {
        let until = now.after(settings.recovery_timeout);
        self.generation = self.generation.wrapping_add(1);
        self.phase = CircuitState::Open { since: now, until };
        Transition::Opened { until }
    }

    /// Closes the breaker now; results of running starts no longer count.
    pub fn reset(&mut self) -> Transition {
        self.generation = self.generation.wrapping_add(1);
        self.phase = CircuitState::default();
        Transition::Closed
    }

    /// Abandons a running probe whose owner is gone, so that another one can start. A late result of the
    /// abandoned probe does not count.
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
