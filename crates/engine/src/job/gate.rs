//! What a job and its breakers say to each other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{BreakerSettings, Cause, Health, Then, Ticket, Timestamp};

use super::hold::Hold;
use super::item::Doing;
use super::state::Job;
use crate::breaker::{Report, Signal};
use crate::event::{Event, Failed, Held, Record, Released, Subject};
use crate::workflow::Action;

impl Job {
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

    /// The breakers that its commands name, let running attempts through or hold items, also those of
    /// targets that depend on the item.
    #[must_use]
    pub fn breakers(&self) -> BTreeSet<Arc<str>> {
        let named = self.plan.breakers().into_keys().map(Arc::from);
        let passes = self.passes.values().map(|(name, _)| Arc::clone(name));
        let steps = self.steps.iter();
        let holds = steps.flat_map(|step| step.held.breakers().cloned());
        named.chain(passes).chain(holds).collect()
    }

    /// The settings that the commands of running and held items give a breaker of their target.
    #[must_use]
    pub fn breaker_settings(&self, breaker: &str) -> BreakerSettings {
        let passes = self.passes.iter();
        let passes = passes.filter(|(_, (name, _))| **name == *breaker);
        let running = passes.filter_map(|(start, _)| self.running.get(start).copied());
        let steps = (0_u32..).zip(&self.steps);
        let held = steps.flat_map(|(step, state)| {
            let queue = state.held.queue(breaker);
            queue.map(move |(_, item)| (step, item))
        });
        let mut own = running.chain(held).filter_map(|(step, item)| {
            let command = self.active(step, item)?.command;
            let breaker = self.plan.command(command)?.breaker.as_deref()?;
            Some(breaker.settings)
        });
        own.next().unwrap_or_default()
    }

    /// How many items a breaker holds.
    #[must_use]
    pub fn held_by(&self, breaker: &str) -> u32 {
        let held = self.steps.iter().map(|step| step.held.held_by(breaker));
        held.fold(0, u32::saturating_add)
    }

    /// How many attempts of a command are left after so many; the most there can be, if nothing bounds
    /// them.
    pub(crate) fn attempts_left(&self, command: u32, made: u32) -> u64 {
        let command = self.plan.command(command);
        let bound = command.and_then(|command| command.retry.policy.bound().executions());
        bound.map_or(u64::MAX, |bound| bound.saturating_sub(made.into()))
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

    pub(super) fn held(&mut self, held: &Held, now: Timestamp) {
        let of = held.subject;
        self.touch(of);
        self.stop_waiting(of);
        let breaker = Arc::from(self.texts.read(&held.breaker));
        if held.sum.is_some() || mutant::is(Mutant::HoldCharged) {
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
            let breaker = step.held.name(&breaker);
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

    /// What a record that is about to be applied tells a breaker.
    pub(crate) fn report_of(&self, record: &Record) -> Option<Report> {
        let ended = |of: Subject, signal: Signal| {
            let Doing::Running(start) = self.active(of.step, of.item)?.doing else {
                return None;
            };
            let (breaker, ticket) = self.passes.get(&start)?;
            // An attempt that was ended because its job does not wait for it says nothing about its
            // target.
            let signal = if self.ends(of.step, of.item) {
                Signal::Unknown
            } else {
                signal
            };
            Some(Report::Ended {
                breaker: Arc::clone(breaker),
                ticket: *ticket,
                signal,
            })
        };
        match &record.event {
            Event::AttemptStarted(started) => {
                let pass = started.pass.as_ref()?;
                Some(Report::Started {
                    breaker: self.texts.read(&pass.breaker).into(),
                    ticket: pass.ticket(),
                })
            }
            // A target that takes an attempt on is up; what comes of it later says nothing more.
            Event::AttemptAccepted { subject, .. } => ended(*subject, Signal::Up),
            Event::AttemptSucceeded(done) => ended(done.subject, Signal::Up),
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
            _ if failed.cause == Cause::Unreadable && !is_request => Signal::Unknown,
            _ => Health::of_failure(failed.cause, failed.class).into(),
        }
    }

    /// How long an item was held.
    pub(crate) fn held_for(&self, of: Subject, now: Timestamp) -> Option<Duration> {
        let hold = self.step(of.step)?.held.get(of.item)?;
        Some(now.since(hold.since))
    }
}

/// A breaker and what it let a start through with.
pub(crate) type Let = (Arc<str>, Ticket);
