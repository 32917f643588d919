//! A breaker under a series of steps, and its laws.
//!
//! Every step is also taken by a copy that was just saved and restored, which must answer the same. Which
//! results come from before an opening is known here without looking at the tickets.

use std::collections::BTreeSet;
use std::time::Duration;

use undaunted_policy::{
    Admission, Breaker, BreakerSettings, CircuitState, Health, Ticket, Timestamp, Transition, WhenOpen,
};

use super::byte_source::ByteSource;
use super::law::{first_broken, uphold};
use super::restore::round_trip;

#[cfg(test)]
mod tests;

const STEPS: usize = 128;

#[derive(Clone, Copy, Debug)]
pub(super) enum BreakerStep {
    Start,
    /// The running start of this index ends.
    End(usize, Health),
    Pass(Duration),
    Trip,
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum BreakerOutput {
    Started(Admission, Option<Transition>),
    Ended(Option<Transition>),
    Tripped(Transition),
    Reset(Transition),
}

/// A breaker, the starts it has admitted, and the time.
pub(super) struct BreakerRun {
    settings: BreakerSettings,
    breaker: Breaker,
    now: Timestamp,
    /// Rises with every opening and every reset.
    epoch: u32,
    under_way: Vec<(Ticket, u32)>,
    outcomes: BTreeSet<&'static str>,
}

/// One step, with the breaker before and after it.
#[derive(Clone, Copy, Debug)]
struct BreakerObservation {
    settings: BreakerSettings,
    now: Timestamp,
    before: Breaker,
    after: Breaker,
    answer: BreakerOutput,
    /// For a result: its health, whether it is a probe's, and whether it is from before an opening.
    result: Option<(Health, bool, bool)>,
}

pub(super) fn run_breaker(bytes: &mut ByteSource<'_>) -> BTreeSet<&'static str> {
    let settings = BreakerSettings {
        failure_threshold: bytes.count(),
        recovery_timeout: bytes.duration(),
        half_open_max_calls: bytes.count(),
        when_open: bytes.one_of(WhenOpen::Hold, &[WhenOpen::Fail]),
        max_hold: bytes.maybe(ByteSource::duration),
    };
    let mut run = BreakerRun::new(Breaker::default(), settings, bytes.instant());
    for _ in 0..STEPS {
        let step = step(bytes);
        run.take(step);
        if bytes.is_empty() {
            break;
        }
    }
    run.outcomes
}

fn step(bytes: &mut ByteSource<'_>) -> BreakerStep {
    match bytes.byte() % 8 {
        0..=2 => BreakerStep::Start,
        3 | 4 => {
            let health = bytes.one_of(Health::Down, &[Health::Up, Health::Unknown]);
            BreakerStep::End(bytes.byte().into(), health)
        }
        5 => BreakerStep::Pass(bytes.duration()),
        6 => BreakerStep::Trip,
        _ => BreakerStep::Reset,
    }
}

impl BreakerRun {
    pub(super) fn new(breaker: Breaker, settings: BreakerSettings, now: Timestamp) -> Self {
        Self { settings, breaker, now, epoch: 0, under_way: vec![], outcomes: BTreeSet::new() }
    }

    pub(super) fn take(&mut self, step: BreakerStep) {
        let (step, ended) = match step {
            BreakerStep::Pass(time) => {
                self.now = self.now.after(time);
                return;
            }
            BreakerStep::End(..) if self.under_way.is_empty() => return,
            BreakerStep::End(number, health) => {
                let index = number % self.under_way.len();
                (step, Some((self.under_way.swap_remove(index), health)))
            }
            step => (step, None),
        };
        let before = self.breaker;
        let copy = round_trip(&serde_json::to_vec(&before).unwrap_or_default());
        let (answer, after) = self.answer(step, ended, before);
        let echoed = copy.map(|copy| self.answer(step, ended, copy));
        let same = echoed == Some((answer, after));
        uphold("a restored breaker answers the same", same, &(before, step));
        self.breaker = after;
        let observation = BreakerObservation {
            settings: self.settings,
            now: self.now,
            before,
            after,
            answer,
            result: ended.map(|((ticket, epoch), health)| (health, ticket.probe, epoch != self.epoch)),
        };
        if let Some(law) = observation.broken() {
            uphold(law, false, &observation);
        }
        self.note(answer);
    }

    fn answer(
        &self,
        step: BreakerStep,
        ended: Option<((Ticket, u32), Health)>,
        mut breaker: Breaker,
    ) -> (BreakerOutput, Breaker) {
        let (settings, now) = (&self.settings, self.now);
        let answer = match (step, ended) {
            (BreakerStep::Trip, _) => BreakerOutput::Tripped(breaker.trip(settings, now)),
            (BreakerStep::Reset, _) => BreakerOutput::Reset(breaker.reset()),
            (_, Some(((ticket, _), health))) => {
                BreakerOutput::Ended(breaker.report(settings, ticket, health, now))
            }
            (_, None) => {
                let (admission, transition) = breaker.admit(settings, now);
                BreakerOutput::Started(admission, transition)
            }
        };
        (answer, breaker)
    }

    fn note(&mut self, answer: BreakerOutput) {
        let transition = match answer {
            BreakerOutput::Started(admission, transition) => {
                self.outcomes.insert(match admission {
                    Admission::Go(_) => "started",
                    Admission::Held { .. } => "held",
                    Admission::Refused => "circuit_open",
                });
                if let Admission::Go(ticket) = admission {
                    let probes = |(other, epoch): &(Ticket, u32)| other.probe && *epoch == self.epoch;
                    let alone = !ticket.probe || !self.under_way.iter().any(probes);
                    uphold("no two probes are under way", alone, &self.under_way);
                    self.under_way.push((ticket, self.epoch));
                }
                transition
            }
            BreakerOutput::Ended(transition) => transition,
            BreakerOutput::Tripped(transition) | BreakerOutput::Reset(transition) => Some(transition),
        };
        let restarts = matches!(transition, Some(Transition::Opened { .. }))
            || matches!(answer, BreakerOutput::Reset(_));
        self.epoch = self.epoch.wrapping_add(u32::from(restarts));
        self.outcomes.extend(transition.map(|transition| match transition {
            Transition::Opened { .. } => "breaker_opened",
            Transition::HalfOpened => "breaker_half_opened",
            Transition::Closed => "breaker_closed",
        }));
    }
}

impl BreakerObservation {
    fn broken(&self) -> Option<&'static str> {
        first_broken(match self.answer {
            BreakerOutput::Started(admission, transition) => self.start(admission, transition),
            BreakerOutput::Ended(transition) => self.end(transition),
            BreakerOutput::Tripped(transition) => {
                vec![("a trip opens", self.opened(Some(transition)))]
            }
            BreakerOutput::Reset(transition) => vec![(
                "a reset closes",
                transition == Transition::Closed && self.after.circuit() == CircuitState::default(),
            )],
        })
    }

    fn start(&self, admission: Admission, transition: Option<Transition>) -> Vec<(&'static str, bool)> {
        let probe = match admission {
            Admission::Go(ticket) => Some(ticket.probe),
            _ => None,
        };
        let unchanged = self.before == self.after && transition.is_none();
        let closed_until = match self.before.circuit() {
            CircuitState::Open { until, .. } if self.now < until => Some(Some(until)),
            CircuitState::HalfOpen { probing: true, .. } => Some(None),
            _ => None,
        };
        let expected = match (closed_until, self.settings.when_open) {
            (Some(until), WhenOpen::Hold) => admission == Admission::Held { until },
            (Some(_), WhenOpen::Fail) => admission == Admission::Refused,
            (None, _) => probe.is_some(),
        };
        let probing = matches!(self.after.circuit(), CircuitState::HalfOpen { probing: true, .. });
        let was_closed = matches!(self.before.circuit(), CircuitState::Closed { .. });
        let was_open = matches!(self.before.circuit(), CircuitState::Open { .. });
        let half_opened = transition == Some(Transition::HalfOpened);
        vec![
            ("a start passes unless the breaker is open or probing", expected),
            ("a start that does not pass changes nothing", probe.is_some() || unchanged),
            (
                "a closed breaker admits a start and does not change",
                !was_closed || (unchanged && probe == Some(false)),
            ),
            (
                "a start that passes a breaker that is not closed is a probe",
                was_closed || probe != Some(false),
            ),
            ("a probe under way is remembered", probe != Some(true) || probing),
            (
                "the first start after the timeout half-opens",
                half_opened == (was_open && probe == Some(true)),
            ),
        ]
    }

    fn end(&self, transition: Option<Transition>) -> Vec<(&'static str, bool)> {
        let Some((health, probe, stale)) = self.result else {
            return vec![("a result belongs to a start", false)];
        };
        let unchanged = self.before == self.after && transition.is_none();
        let counted = !stale && !matches!(self.before.circuit(), CircuitState::Open { .. });
        let half_open = matches!(self.before.circuit(), CircuitState::HalfOpen { .. });
        let transition_fits = match transition {
            None => true,
            Some(Transition::Opened { .. }) => health == Health::Down && self.opened(transition),
            Some(Transition::Closed) => {
                health == Health::Up && self.after.circuit() == CircuitState::default()
            }
            Some(Transition::HalfOpened) => false,
        };
        let below = match (self.before.circuit(), self.after.circuit(), health) {
            (CircuitState::Closed { failures: before }, CircuitState::Closed { failures }, Health::Down) => {
                failures == before.saturating_add(1) && failures < self.settings.failure_threshold
            }
            (CircuitState::Closed { .. }, CircuitState::Closed { failures }, Health::Up) => failures == 0,
            _ => true,
        };
        let probing = matches!(self.after.circuit(), CircuitState::HalfOpen { probing: true, .. });
        vec![
            ("a result from before an opening changes nothing", counted || unchanged),
            ("a result opens when bad, closes when good", transition_fits),
            ("a closed breaker counts failures in a row up to its threshold", !counted || below),
            ("a probe that has ended makes room", !(counted && half_open && probe && probing)),
            (
                "a result that says nothing about the target changes nothing",
                health != Health::Unknown || half_open || unchanged,
            ),
        ]
    }

    /// Whether it is open from now on for the recovery timeout.
    fn opened(&self, transition: Option<Transition>) -> bool {
        let until = self.now.after(self.settings.recovery_timeout);
        let since = self.now;
        transition == Some(Transition::Opened { until })
            && self.after.circuit() == CircuitState::Open { since, until }
    }
}
