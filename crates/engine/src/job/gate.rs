//! What a job and its breakers say to each other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{BreakerSettings, Cause, Health, Phase, Then, Ticket, Timestamp};

use super::hold::Hold;
use super::item::Doing;
use super::state::Job;
use crate::breaker::{BreakerState, Breakers, Change, Openness, Signal, Told};
use crate::event::{Event, Failed, Held, Opened, Record, Released, Started, Subject, Text};
use crate::workflow::Action;

impl Job {
    /// The breakers its commands ask, as it knows them.
    #[must_use]
    pub const fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    /// The same, to take from it what has to be written.
    pub const fn breakers_mut(&mut self) -> &mut Breakers {
        &mut self.breakers
    }

    /// Takes note of what a breaker is where it is kept.
    pub fn learn(&mut self, breaker: &str, state: BreakerState, now: Timestamp) {
        let (held, draw) = (self.held_by(breaker), self.seed().0);
        let state = state.clamped(now);
        self.breakers.learn(breaker, state, held, draw, now);
    }

    /// An item is about to start, and this is what its request goes to; each target has a breaker, with
    /// the settings its command gives it.
    pub fn aim(&mut self, step: u32, item: u32, target: &str, settings: BreakerSettings) {
        self.breakers.aim((step, item), target, settings);
    }

    /// The breaker that a command names.
    #[must_use]
    pub fn breaker_of(&self, command: u32) -> Option<&str> {
        self.plan
            .command(command)?
            .breaker
            .as_ref()?
            .name
            .as_deref()
    }

    /// The breakers that let running attempts through or hold items, also those of targets that depend
    /// on the item.
    #[must_use]
    pub fn breakers_in_use(&self) -> BTreeSet<Arc<str>> {
        let passes = self.passes.values().map(|(name, _)| Arc::clone(name));
        let steps = self.steps.iter();
        let holds = steps.flat_map(|step| step.held.breakers().cloned());
        passes.chain(holds).collect()
    }

    /// Whether it knows of a breaker that lets not everything through, which others may change.
    #[must_use]
    pub fn is_held_up(&self) -> bool {
        let mut names = self.breakers.names();
        names.any(|name| {
            let known = self.breakers.get(name);
            known.is_some_and(|state| !matches!(state.breaker.phase(), Phase::Closed { .. }))
        })
    }

    /// How many items a breaker holds.
    #[must_use]
    pub fn held_by(&self, breaker: &str) -> u32 {
        let held = self.steps.iter().map(|step| step.held.held_by(breaker));
        held.fold(0, u32::saturating_add)
    }

    /// What the breaker of a command lets through; everything, if it asks none.
    #[must_use]
    pub(crate) fn openness(&self, breaker: Option<&str>, now: Timestamp) -> Openness {
        breaker.map_or(Openness::Passes(u32::MAX), |name| {
            self.breakers.openness(name, now)
        })
    }

    /// How many attempts of a command are left after so many; the most there can be, if nothing bounds
    /// them.
    pub(crate) fn attempts_left(&self, command: u32, made: u32) -> u64 {
        let command = self.plan.command(command);
        let bound = command.and_then(|command| command.retry.policy.bound().executions());
        bound.map_or(u64::MAX, |bound| bound.saturating_sub(made.into()))
    }

    /// The fact that a breaker keeps an item back.
    pub(crate) fn hold(
        &self,
        of: Subject,
        breaker: &str,
        sum: Option<crate::event::Sum>,
        now: Timestamp,
    ) -> Held {
        let active = self.active(of.step, of.item);
        let deadline = active.and_then(|active| self.deadline_of(of.step, active));
        let state = self.breakers.get(breaker);
        let longest = state.and_then(|state| state.settings.max_hold);
        let longest = longest.map(|longest| now.after(longest));
        let left = self.attempts_left(of.command, of.attempt);
        Held {
            subject: of,
            breaker: self.named(breaker),
            // A rule that holds opens the breaker, as soon as that is told.
            until: state.and_then(|state| {
                let opens = now.after(state.settings.recovery_timeout);
                state.until().or_else(|| sum.map(|_| opens))
            }),
            expires: deadline.into_iter().chain(longest).min(),
            left: Some(left).filter(|left| *left < u64::MAX),
            sum,
        }
    }

    /// Settings have changed: what is held may be held for longer, or not as long.
    pub(super) fn hold_by_changed_settings(&mut self) {
        let settings = self.plan.breakers();
        let mut moved = Vec::new();
        for (step, state) in (0_u32..).zip(&self.steps) {
            for item in state.held.items() {
                let (Some(hold), Some(active)) = (state.held.get(item), self.active(step, item))
                else {
                    continue;
                };
                let longest = settings.get(&*hold.breaker).and_then(|it| it.max_hold);
                let longest = longest.map(|longest| hold.since.after(longest));
                let deadline = self.deadline_of(step, active);
                moved.push((step, item, longest.into_iter().chain(deadline).min()));
            }
        }
        for (step, item, expires) in moved {
            if let Some(state) = self.step_mut(step) {
                state.held.expire_at(item, expires);
            }
        }
    }

    /// A name as it stands in an event.
    fn named(&self, name: &str) -> Text {
        let known = self.texts.number(name);
        known.map_or_else(|| Text::Itself(name.to_owned()), Text::Kept)
    }

    pub(super) fn held(&mut self, held: &Held, now: Timestamp) {
        let of = held.subject;
        self.touch(of);
        self.stop_waiting(of);
        let breaker = self.breakers.name(self.texts.read(&held.breaker));
        if held.sum.is_some() {
            self.charge(of);
        }
        let Some(active) = self.active_mut(of) else {
            return;
        };
        if held.sum.is_some() {
            active.set_progress(active.progress().after_hold());
        }
        active.doing = Doing::Held;
        active.set_expires(None);
        if let Some(step) = self.step_mut(of.step) {
            step.held.insert(
                of.item,
                Hold {
                    breaker,
                    since: now,
                    expires: held.expires,
                    left: held.left.unwrap_or(u64::MAX),
                },
            );
        }
        self.share(of);
    }

    pub(super) fn released(&mut self, released: &Released) {
        self.stop_waiting(released.subject);
    }

    /// Takes back a start that was not recorded and has not begun. The attempt is not used, and if it
    /// was the first of its item, the time of that has not begun to run.
    pub(crate) fn withdraw(&mut self, started: &Started, is_first: bool) -> Subject {
        let attempt = started.subject.attempt.saturating_sub(1);
        let of = Subject {
            attempt,
            ..started.subject
        };
        if self.running.remove(&started.start).is_none() {
            return of;
        }
        self.passes.remove(&started.start);
        if self.plan.is_main(of.command) {
            let retry = u64::from(attempt > 0);
            self.counts.attempts = self.counts.attempts.saturating_sub(1);
            self.counts.retries = self.counts.retries.saturating_sub(retry);
        }
        if let Some(step) = self.step_mut(of.step) {
            step.running = step.running.saturating_sub(1);
        }
        if let Some(active) = self.active_mut(of) {
            active.attempts = attempt;
            active.doing = Doing::Undecided;
            active.set_began(active.began().filter(|_| !is_first));
        }
        of
    }

    /// What a record that is about to be applied tells a breaker.
    pub(crate) fn told_by(&self, record: &Record) -> Option<Told> {
        let at = record.at;
        let ended = |of: Subject, signal: Signal| {
            let Doing::Running(start) = self.active(of.step, of.item)?.doing else {
                return None;
            };
            let (breaker, ticket) = self.passes.get(&start)?;
            // What was ended because nobody waits for it says nothing about its target.
            let signal = if self.ends(of.step, of.item) {
                Signal::Health(Health::Unknown)
            } else {
                signal
            };
            Some(Told::Ended {
                breaker: Arc::clone(breaker),
                of,
                ticket: *ticket,
                signal,
                at,
            })
        };
        match &record.event {
            Event::AttemptStarted(started) => {
                let pass = started.pass.as_ref()?;
                let of = started.subject;
                let active = self.active(of.step, of.item);
                Some(Told::Started {
                    breaker: self.breakers.name(self.texts.read(&pass.breaker)),
                    start: started.start,
                    of,
                    is_first: active.is_none_or(|active| active.began().is_none()),
                    ticket: pass.ticket(),
                    at,
                })
            }
            // Whoever takes an attempt on is there; what comes of it later says nothing more.
            Event::AttemptAccepted { subject, .. } => ended(*subject, Signal::Health(Health::Up)),
            Event::AttemptSucceeded(done) => ended(done.subject, Signal::Health(Health::Up)),
            Event::AttemptFailed(failed) => ended(failed.subject, self.signal_of(failed)),
            _ => None,
        }
    }

    /// What a failure says about its target.
    fn signal_of(&self, failed: &Failed) -> Signal {
        let command = self.plan.command(failed.subject.command);
        let is_request =
            command.is_some_and(|it| matches!(it.action, Action::Http(_) | Action::Step(_)));
        let rule = failed.rule.and_then(|rule| usize::try_from(rule).ok());
        let rule = command.zip(rule).and_then(|(command, rule)| {
            let table = command.retry.policy.rules().table();
            table.get(rule)
        });
        match rule {
            Some(rule) if rule.then() == Then::Hold => Signal::Trip,
            // Output of a program that cannot be used says nothing about what the program called.
            _ if failed.cause == Cause::Unreadable && !is_request => {
                Signal::Health(Health::Unknown)
            }
            _ => Signal::Health(Health::of_failure(failed.cause, failed.class)),
        }
    }

    /// Tells a breaker something; the event that follows from it, if one does.
    pub(crate) fn tell_breaker(&mut self, told: Told) -> Option<Event> {
        let name = Arc::clone(told.breaker());
        let at = told.at();
        let before = self.breakers.get(&name)?.clone();
        let id = Arc::clone(&self.submitted);
        let change = self.breakers.tell(&id.job, told)?;
        let breaker = self.named(&name);
        Some(match change {
            Change::Opened | Change::Tripped => {
                let by_rule = change == Change::Tripped;
                let counted = !by_rule && !before.is_shut();
                Event::BreakerOpened(Opened {
                    breaker,
                    until: self.breakers.get(&name)?.until()?,
                    failures: if counted {
                        before.failures().saturating_add(1)
                    } else {
                        0
                    },
                    by_rule,
                })
            }
            Change::HalfOpened => Event::BreakerHalfOpened { breaker },
            Change::Closed => {
                let (held, draw) = (self.held_by(&name), self.seed().0);
                self.breakers.let_go(&name, held, draw, at);
                Event::BreakerClosed { breaker }
            }
            _ => return None,
        })
    }

    /// How long an item was held.
    pub(crate) fn held_for(&self, of: Subject, now: Timestamp) -> Option<Duration> {
        let hold = self.step(of.step)?.held.get(of.item)?;
        Some(now.since(hold.since))
    }
}

/// A breaker and what it let a start through with.
pub(crate) type Let = (Arc<str>, Ticket);
