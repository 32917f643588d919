//! What a job tells its breakers, and the holds that they cause.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{BreakerSettings, FailureCause, Health, RuleAction, Timestamp};

use super::hold::Hold;
use super::item::Activity;
use super::state::Job;
use crate::breaker::{BreakerReport, TargetSignal};
use crate::event::{AttemptFailed, AttemptId, Event, ItemEvent, Record, StartHeld};
use crate::id::{CommandId, StepId};
use crate::mutant::{self, Mutant};
use crate::workflow::Action;

impl Job {
    pub fn breaker_of(&self, command: CommandId) -> Option<&str> {
        let breaker = self.plan.command(command)?.breaker.as_ref()?;
        breaker.name.as_deref()
    }

    /// The breakers that commands name, that running attempts have passed or that hold items. The latter two
    /// matter because a target may depend on the item.
    pub fn breakers(&self) -> BTreeSet<Arc<str>> {
        let named = self.plan.breakers().into_keys().map(Arc::from);
        let passes = self.starts.passes.values().map(|(name, _)| Arc::clone(name));
        let holds = self.steps.iter().flat_map(|step| step.held.breakers().cloned());
        named.chain(passes).chain(holds).collect()
    }

    /// The settings that the command of a running or held item gives the breaker of its target.
    pub fn breaker_settings(&self, breaker: &str) -> BreakerSettings {
        let passes = self.starts.passes.iter().filter(|(_, (name, _))| **name == *breaker);
        let running = passes.filter_map(|(start, _)| self.starts.running.get(start).copied());
        let steps = StepId::all().zip(&self.steps);
        let held =
            steps.flat_map(|(step, state)| state.held.queue(breaker).map(move |(_, index)| step.item(index)));
        let mut own = running.chain(held).filter_map(|item| {
            let command = self.active(item)?.command;
            let breaker = self.plan.command(command)?.breaker.as_deref()?;
            Some(breaker.settings)
        });
        own.next().unwrap_or_default()
    }

    pub fn held_by(&self, breaker: &str) -> u32 {
        self.steps.iter().map(|step| step.held.held_by(breaker)).fold(0, u32::saturating_add)
    }

    /// `u64::MAX` if unlimited.
    pub(crate) fn attempts_left(&self, command: CommandId, made: u32) -> u64 {
        let command = self.plan.command(command);
        let bound = command.and_then(|command| command.retry.policy.bound().executions());
        bound.map_or(u64::MAX, |bound| bound.saturating_sub(made.into()))
    }

    /// Moves the ends of holds after a change of settings.
    pub(super) fn hold_by_changed_settings(&mut self) {
        let settings = self.plan.breakers();
        let mut moved = Vec::new();
        for (step, state) in StepId::all().zip(&self.steps) {
            for item in state.held.items() {
                let (Some(hold), Some(active)) = (state.held.get(item), self.active(step.item(item))) else {
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

    pub(super) fn held(&mut self, held: &StartHeld, now: Timestamp) {
        let of = held.of;
        let item = of.item();
        self.activate(item, of.command);
        self.stop_waiting(item);
        let breaker = Arc::from(self.texts.read(&held.breaker));
        if held.arithmetic.is_some() || mutant::is(Mutant::HoldCharged) {
            self.charge(item);
        }
        let Some(active) = self.active_mut(item) else { return };
        if held.arithmetic.is_some() {
            active.set_progress(active.progress().after_hold());
        }
        active.activity = Activity::Held;
        active.set_expires(None);
        if let Some(step) = self.step_mut(of.step) {
            let breaker = step.held.name(&breaker);
            step.held.insert(
                of.index,
                Hold { breaker, since: now, expires: held.expires, left: held.left.unwrap_or(u64::MAX) },
            );
        }
        self.share(item);
    }

    pub(crate) fn report_of(&self, record: &Record) -> Option<BreakerReport> {
        let Event::Item(event) = &record.event else { return None };
        let (of, signal) = if let ItemEvent::AttemptStarted(started) = event {
            let pass = started.pass.as_ref()?;
            let breaker = self.texts.read(&pass.breaker).into();
            return Some(BreakerReport::Started { breaker, ticket: pass.ticket() });
        } else if let ItemEvent::AttemptAccepted { of, .. } = event {
            // A target that accepts an attempt is up; the later result says nothing more.
            (*of, TargetSignal::Up)
        } else if let ItemEvent::AttemptSucceeded(done) = event {
            (done.of, TargetSignal::Up)
        } else if let ItemEvent::AttemptFailed(failed) = event {
            (failed.of, self.signal_of(failed))
        } else {
            return None;
        };
        if self.starts.passes.is_empty() {
            return None;
        }
        let Activity::Running(start) = self.active(of.item())?.activity else { return None };
        let (breaker, ticket) = self.starts.passes.get(&start)?;
        // An attempt that its own job ended says nothing about the target.
        let signal = if self.ends(of.item()) { TargetSignal::Unknown } else { signal };
        Some(BreakerReport::Ended { breaker: Arc::clone(breaker), ticket: *ticket, signal })
    }

    fn signal_of(&self, failed: &AttemptFailed) -> TargetSignal {
        let command = self.plan.command(failed.of.command);
        let is_request = command.is_some_and(|it| matches!(it.action, Action::Http(_) | Action::Step(_)));
        let rule = failed.rule.and_then(|rule| usize::try_from(rule).ok());
        let rule =
            command.zip(rule).and_then(|(command, rule)| command.retry.policy.rules().table().get(rule));
        if rule.is_some_and(|rule| rule.then() == RuleAction::Hold) {
            TargetSignal::Trip
        } else if failed.cause == FailureCause::Unreadable && !is_request {
            // Unusable output of a program says nothing about the target that the program called.
            TargetSignal::Unknown
        } else {
            Health::of_failure(failed.cause, failed.class).into()
        }
    }

    pub(crate) fn held_for(&self, of: AttemptId, now: Timestamp) -> Option<Duration> {
        let hold = self.step(of.step)?.held.get(of.index)?;
        Some(now.since(hold.since))
    }
}
