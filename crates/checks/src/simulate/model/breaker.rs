//! A breaker: closed, open until an instant, or half open.

use std::time::Duration;

use super::failure::Signal;
use crate::simulate::case::Breaker;

/// One breaker, and how it stands.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) settings: Breaker,
    pub(super) phase: Phase,
    /// How often it has opened: results of earlier starts are ignored.
    pub(super) opened: u32,
    /// When it closed last.
    pub(super) closed_at: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed { failures: u32 },
    Open { until: Duration },
    HalfOpen { successes: u32, probing: bool },
}

/// What a start was let through with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    opened: u32,
    probe: bool,
}

impl Gate {
    pub(super) fn new(settings: Breaker) -> Self {
        Self { settings, phase: Phase::Closed { failures: 0 }, opened: 0, closed_at: None }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    /// Whether the next start would be a probe.
    pub(super) fn may_probe(&self, now: Duration) -> bool {
        match self.phase {
            Phase::Closed { .. } => false,
            Phase::Open { until } => until <= now,
            Phase::HalfOpen { probing, .. } => !probing,
        }
    }

    /// A start that it lets through.
    pub(super) fn start(&mut self) -> Ticket {
        let probe = !self.is_closed();
        if probe {
            let successes = match self.phase {
                Phase::HalfOpen { successes, .. } => successes,
                _ => 0,
            };
            self.phase = Phase::HalfOpen { successes, probing: true };
        }
        Ticket { opened: self.opened, probe }
    }

    /// A result of a start that it let through.
    pub(super) fn report(&mut self, ticket: Ticket, signal: Signal, now: Duration) {
        if ticket.opened != self.opened {
            return;
        }
        match (self.phase, signal) {
            (Phase::Closed { .. }, Signal::Up) => self.phase = Phase::Closed { failures: 0 },
            (Phase::Closed { failures }, Signal::Down) => {
                let failures = failures.saturating_add(1);
                self.phase = Phase::Closed { failures };
                if failures >= self.settings.threshold {
                    self.open(now);
                }
            }
            (Phase::HalfOpen { successes, .. }, Signal::Up) if ticket.probe => {
                let successes = successes.saturating_add(1);
                self.phase = Phase::HalfOpen { successes, probing: false };
                if successes >= self.settings.half_open_calls {
                    self.phase = Phase::Closed { failures: 0 };
                    self.closed_at = Some(now);
                    // What started while it was half open was a probe; there is nothing else to ignore.
                }
            }
            (Phase::HalfOpen { .. }, Signal::Down) if ticket.probe => self.open(now),
            (Phase::HalfOpen { successes, .. }, Signal::Nothing) if ticket.probe => {
                self.phase = Phase::HalfOpen { successes, probing: false };
            }
            _ => {}
        }
    }

    /// A rule says that the target is down.
    pub(super) fn trip(&mut self, ticket: Option<Ticket>, now: Duration) {
        if ticket.is_none_or(|ticket| ticket.opened == self.opened) {
            self.open(now);
        }
    }

    fn open(&mut self, now: Duration) {
        self.opened = self.opened.saturating_add(1);
        self.phase = Phase::Open { until: now.saturating_add(self.settings.recovery) };
    }
}
