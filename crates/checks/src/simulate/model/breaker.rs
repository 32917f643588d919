//! A breaker: closed, open until an instant, or half open.

use std::time::Duration;

use super::judge::ModelSignal;
use crate::simulate::case::CaseBreaker;

#[derive(Clone, Debug)]
pub(super) struct ModelBreaker {
    pub(super) settings: CaseBreaker,
    pub(super) phase: ModelBreakerPhase,
    /// How often it has opened; results of starts before the last opening are ignored.
    pub(super) opened: u32,
    pub(super) closed_at: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelBreakerPhase {
    Closed { failures: u32 },
    Open { until: Duration },
    HalfOpen { successes: u32, probing: bool },
}

/// The admission of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelTicket {
    opened: u32,
    probe: bool,
}

impl ModelBreaker {
    pub(super) fn new(settings: CaseBreaker) -> Self {
        Self { settings, phase: ModelBreakerPhase::Closed { failures: 0 }, opened: 0, closed_at: None }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.phase, ModelBreakerPhase::Closed { .. })
    }

    /// Whether the next start would be a probe.
    pub(super) fn may_probe(&self, now: Duration) -> bool {
        match self.phase {
            ModelBreakerPhase::Closed { .. } => false,
            ModelBreakerPhase::Open { until } => until <= now,
            ModelBreakerPhase::HalfOpen { probing, .. } => !probing,
        }
    }

    /// Admits a start.
    pub(super) fn start(&mut self) -> ModelTicket {
        let probe = !self.is_closed();
        if probe {
            let successes = match self.phase {
                ModelBreakerPhase::HalfOpen { successes, .. } => successes,
                _ => 0,
            };
            self.phase = ModelBreakerPhase::HalfOpen { successes, probing: true };
        }
        ModelTicket { opened: self.opened, probe }
    }

    /// The result of an admitted start.
    pub(super) fn report(&mut self, ticket: ModelTicket, signal: ModelSignal, now: Duration) {
        if ticket.opened != self.opened {
            return;
        }
        match (self.phase, signal) {
            (ModelBreakerPhase::Closed { .. }, ModelSignal::Up) => {
                self.phase = ModelBreakerPhase::Closed { failures: 0 }
            }
            (ModelBreakerPhase::Closed { failures }, ModelSignal::Down) => {
                let failures = failures.saturating_add(1);
                self.phase = ModelBreakerPhase::Closed { failures };
                if failures >= self.settings.threshold {
                    self.open(now);
                }
            }
            (ModelBreakerPhase::HalfOpen { successes, .. }, ModelSignal::Up) if ticket.probe => {
                let successes = successes.saturating_add(1);
                self.phase = ModelBreakerPhase::HalfOpen { successes, probing: false };
                if successes >= self.settings.half_open_calls {
                    self.phase = ModelBreakerPhase::Closed { failures: 0 };
                    self.closed_at = Some(now);
                    // Starts while it was half open were probes; there are no other results to ignore.
                }
            }
            (ModelBreakerPhase::HalfOpen { .. }, ModelSignal::Down) if ticket.probe => self.open(now),
            (ModelBreakerPhase::HalfOpen { successes, .. }, ModelSignal::Nothing) if ticket.probe => {
                self.phase = ModelBreakerPhase::HalfOpen { successes, probing: false };
            }
            _ => {}
        }
    }

    /// A rule says that the target is down.
    pub(super) fn trip(&mut self, ticket: Option<ModelTicket>, now: Duration) {
        if ticket.is_none_or(|ticket| ticket.opened == self.opened) {
            self.open(now);
        }
    }

    fn open(&mut self, now: Duration) {
        self.opened += 1;
        self.phase = ModelBreakerPhase::Open { until: now.saturating_add(self.settings.recovery) };
    }
}
