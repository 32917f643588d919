//! The only function that changes a job. It cannot fail: a stored fact is a fact.
//!
//! An event about something that is not there, which only a damaged or foreign journal can hold,
//! changes nothing; `law` notices what then does not add up.

use std::sync::Arc;

use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{Reason, Timestamp};

use super::item::{Active, Doing, Frame, Item, Scope, Settled};
use super::state::{Job, Mishap, Stage, stored_workflow};
use super::step::{StepStage, StepState};
use crate::capture;
use crate::event::{
    Event, Failed, NewItem, Record, Resumed, Retrying, Started, Stopped, Subject, Succeeded, Text,
};
use crate::plan::Plan;
use crate::workflow::{MaxParallel, Work};

/// How much of the last error an item remembers, if it stands nowhere else.
const REMEMBERED: usize = 200;

impl Job {
    /// Takes note of what has happened.
    pub fn apply(&mut self, record: &Record) {
        let left = self.run_until;
        self.last_at = record.at;
        if !record.event.may_be_asked_for() {
            self.run_until = record.at;
        }
        match &record.event {
            Event::JobResumed(resumed) => self.resumed(resumed, left, record.at),
            Event::StepStarted { step, start } => self.step_started(*step, *start, record.at),
            Event::ItemsRead { step, items, last } => self.items_read(*step, items, *last),
            Event::InputFailed {
                step,
                reason,
                error,
                ..
            } => {
                self.close(*step, StepStage::Failed);
                // What was ended because the job was cancelled did not fail it.
                if self.stopped.is_none() {
                    self.note_failure(*step, *reason, error);
                }
            }
            Event::TextKept { text } => self.texts.keep(text),
            Event::JobStopping { reason } => {
                self.stage = Stage::Stopping(*reason);
                self.stopped = Some(*reason);
            }
            Event::StepCompleted { step } => self.complete(*step),
            Event::StepFailed { step } => self.close(*step, StepStage::Failed),
            Event::JobCompleted(_) => self.stage = Stage::Completed,
            Event::JobPartial(_) => self.stage = Stage::Partial,
            Event::JobFailed(_) => self.stage = Stage::Failed,
            Event::JobCancelled(_) => self.stage = Stage::Cancelled,
            Event::JobSuspended => self.stage = Stage::Suspended,
            Event::PolicyChanged { text, .. } => self.policy_changed(text),
            Event::StateImported { commands } => self.import(commands),
            Event::JobRedriven { reduce } => {
                self.rounds = self.rounds.saturating_add(1);
                self.reopen(*reduce);
            }
            Event::JobPaused => self.paused = Some(record.at),
            Event::JobUnpaused { away } => self.unpause(*away, record.at),
            Event::PoolToppedUp {
                total, per_item, ..
            } => {
                if let Some(pool) = &mut self.pool {
                    pool.limits.total = *total;
                    pool.limits.per_item = per_item.unwrap_or(pool.limits.per_item);
                }
            }
            // A job begins with its submission. Breakers are not part of jobs; jobs of earlier releases
            // have their openings and closings on record.
            Event::JobSubmitted(_)
            | Event::BreakerOpened(_)
            | Event::BreakerHalfOpened { .. }
            | Event::BreakerClosed { .. }
            | Event::BreakerConfigured { .. } => {}
            Event::CompletionReached(reached) => self.reach(reached),
            Event::StepSkipped { step } => self.close(*step, StepStage::Skipped),
            Event::StepUnreachable { step, missing } => self.cannot_reach(*step, missing),
            Event::AttributeSet { step, name, value } => self.set_attribute(*step, name, value),
            _ => self.apply_to_item(record),
        }
    }

    /// The same for what happens to one item.
    fn apply_to_item(&mut self, record: &Record) {
        match &record.event {
            Event::AttemptStarted(started) => self.attempt_started(started, record.at),
            Event::AttemptSucceeded(succeeded) => self.attempt_succeeded(succeeded),
            Event::AttemptFailed(failed) => self.attempt_failed(failed),
            Event::AttemptAccepted { subject, until } => self.attempt_accepted(*subject, *until),
            Event::RetryScheduled(retrying) => self.retry_scheduled(retrying),
            Event::CommandStopped(stopped) => self.command_stopped(stopped),
            Event::CommandRepeated { subject } => self.command_repeated(*subject),
            Event::CommandRecovered { subject, next } => self.command_recovered(*subject, *next),
            Event::ItemSucceeded { step, item } => self.settle(*step, *item, Settled::Succeeded),
            Event::ItemDeadLettered {
                subject,
                reason,
                error,
            } => {
                self.note_failure(subject.step, *reason, error);
                self.lay_out(*subject);
                self.settle(subject.step, subject.item, Settled::Dead(*reason));
            }
            Event::ItemSkipped { step, item, reason } => {
                let without = |state: &StepState| state.is_without(*item);
                let settled = if self.step(*step).is_some_and(without) {
                    Settled::Missing(*reason)
                } else {
                    Settled::Skipped(*reason)
                };
                self.settle(*step, *item, settled);
            }
            Event::ItemRedriven { step, item } => self.redrive(*step, *item),
            Event::ItemDropped { step, item } => self.forget(*step, *item),
            Event::Held(held) => self.held(held, record.at),
            Event::Released(released) => self.released(released),
            Event::LateResult(late) => self.come_late(late),
            _ => {}
        }
    }

    fn resumed(&mut self, resumed: &Resumed, last: Timestamp, now: Timestamp) {
        let away = u64::try_from(resumed.away.as_nanos()).unwrap_or(u64::MAX);
        // Somebody may have been seen after the last record.
        let left = last.max(Timestamp::from_nanos(now.as_nanos().saturating_sub(away)));
        let began = std::mem::replace(&mut self.resumed_at, now);
        self.run = resumed.run;
        if resumed.planned {
            // Time stood still already; unpausing must not count it again.
            self.paused = self.paused.map(|since| since.after(resumed.away).min(now));
        }
        if self.stage == Stage::Suspended {
            self.stage = Stage::Running;
        }
        for step in &mut self.steps {
            step.restore(resumed, [began, left, now]);
        }
    }

    fn policy_changed(&mut self, text: &str) {
        // It was checked before it was recorded; a release that refuses it keeps the old.
        let Ok(workflow) = stored_workflow(&self.submitted, text) else {
            return;
        };
        let submitted = Arc::make_mut(&mut self.submitted);
        text.clone_into(&mut submitted.text);
        for (step, width) in &mut submitted.parallel {
            let found = usize::try_from(*step).ok();
            let found = found.and_then(|step| workflow.steps.get(step));
            // A variable keeps the value it had when the job was submitted.
            if let Some(Work::Map(map)) = found.map(|found| &found.work)
                && let MaxParallel::Number(number) = map.max_parallel
            {
                *width = number;
            }
        }
        self.plan = Arc::new(Plan::new(workflow));
        self.hold_by_changed_settings();
    }

    fn items_read(&mut self, step: u32, items: &[NewItem], last: bool) {
        let known = self.step(step).map_or(0, |state| state.items.len());
        if let Some(state) = self.step_mut(step) {
            for item in items {
                state.items.push(item);
            }
            if last {
                state.stage = StepStage::Running;
            }
        }
        self.begin_imported(step, known);
    }

    /// What people read about the job: the failure that ends it, or else the first dead letter of its
    /// map.
    fn note_failure(&mut self, step: u32, reason: Reason, error: &Text) {
        let mishap = Mishap {
            reason,
            error: error.clone(),
        };
        if self.plan.is_map(step) && self.failure.is_some() {
            return;
        }
        self.failure = Some(mishap);
    }

    fn step_started(&mut self, step: u32, start: Option<u64>, now: Timestamp) {
        let command = self.plan.first(step);
        let only = match command.and_then(|command| self.plan.command(command)) {
            Some(command) if self.plan.is_one(step) => Some(NewItem {
                identity: command.id.clone(),
                input: "null".to_owned(),
            }),
            _ => None,
        };
        if let Some(start) = start {
            self.next_start = self.next_start.max(start.saturating_add(1));
        }
        if let Some(state) = self.step_mut(step) {
            state.started = now;
            state.stage = match &only {
                Some(item) => {
                    state.items.push(item);
                    StepStage::Running
                }
                None => StepStage::Reading(start),
            };
        }
        self.begin_imported(step, 0);
    }

    fn attempt_started(&mut self, started: &Started, now: Timestamp) {
        let of = started.subject;
        self.next_start = self.next_start.max(started.start.saturating_add(1));
        self.touch(of);
        if self.active_mut(of).is_none() {
            return;
        }
        self.running.insert(started.start, (of.step, of.item));
        if let Some(pass) = &started.pass {
            let breaker = self.texts.read(&pass.breaker).into();
            self.passes.insert(started.start, (breaker, pass.ticket()));
        }
        if self.plan.is_main(of.command) {
            self.counts.attempts = self.counts.attempts.saturating_add(1);
            let retry = u64::from(of.attempt > 1);
            self.counts.retries = self.counts.retries.saturating_add(retry);
        }
        self.stop_waiting(of);
        if let Some(active) = self.active_mut(of) {
            active.attempts = of.attempt;
            active.doing = Doing::Running(started.start);
            active.set_began(active.began().or(Some(now)));
            active.set_expires(None);
        }
        if let Some(step) = self.step_mut(of.step) {
            step.running = step.running.saturating_add(1);
        }
    }

    fn attempt_accepted(&mut self, of: Subject, until: Timestamp) {
        let active = self.active(of.step, of.item);
        if let Some(Doing::Running(start)) = active.map(|active| active.doing) {
            self.accepted.insert(start, until);
            self.passes.remove(&start);
        }
    }

    fn attempt_succeeded(&mut self, succeeded: &Succeeded) {
        let of = succeeded.subject;
        self.stop_running(of);
        if let Some(active) = self.active_mut(of)
            && active.repeated().is_some()
        {
            let frame = active.frames.pop();
            self.note_recovery(frame);
        }
        if let Some(output) = &succeeded.output {
            self.note_output(of, true, output);
        }
        self.go_on(of, succeeded.next);
    }

    fn attempt_failed(&mut self, failed: &Failed) {
        self.stop_running(failed.subject);
        if let Some(active) = self.active_mut(failed.subject) {
            active.cause = Some(failed.cause);
            // A million items may wait, each with a text of its own.
            active.error = failed.error.clone().map(|error| error.brief(REMEMBERED));
        }
        if let Some(output) = &failed.output {
            self.note_output(failed.subject, false, output);
        }
    }

    fn retry_scheduled(&mut self, retrying: &Retrying) {
        let of = retrying.subject;
        if self.plan.is_main(of.command) {
            self.counts.delay = self.counts.delay.saturating_add(retrying.delay);
        }
        self.charge(of);
        let early = u64::from(mutant::is(Mutant::EarlyRetry)).saturating_mul(100_000_000);
        let due = Timestamp::from_nanos(retrying.due.as_nanos().saturating_sub(early));
        if let Some(active) = self.active_mut(of) {
            active.set_progress(active.progress().after_wait(retrying.delay));
        }
        self.wait(of, due);
        if let Some(active) = self.active_mut(of) {
            active.set_expires(retrying.sum.expires);
        }
    }

    fn command_stopped(&mut self, stopped: &Stopped) {
        let of = stopped.subject;
        self.touch(of);
        self.stop_waiting(of);
        let Some(handler) = stopped.handler else {
            return;
        };
        if let Some(active) = self.active_mut(of) {
            let rounds = active.repeated().map_or(0, |frame| frame.rounds);
            if active.repeated().is_some() {
                active.frames.pop();
            }
            let frame = Frame {
                command: active.command,
                attempts: active.attempts,
                progress: active.progress(),
                rounds: rounds.saturating_add(1),
                reason: stopped.reason,
                error: stopped.error.clone(),
            };
            active.frames.push(frame);
        }
        self.go_on(of, Some(handler));
    }

    fn command_repeated(&mut self, of: Subject) {
        self.charge(of);
        if let Some(active) = self.active_mut(of)
            && let Some(frame) = active.frames.last().cloned()
        {
            active.command = frame.command;
            active.attempts = frame.attempts;
            active.set_progress(frame.progress);
        }
        self.wait(of, Timestamp::ZERO);
    }

    fn command_recovered(&mut self, of: Subject, next: Option<u32>) {
        let frame = self.active_mut(of).and_then(|active| active.frames.pop());
        self.note_recovery(frame);
        self.go_on(of, next);
    }

    /// What stopped and was saved stays in the report.
    fn note_recovery(&mut self, frame: Option<Frame>) {
        if let Some(frame) = frame {
            self.recovered.get_or_insert(Mishap {
                reason: frame.reason,
                error: frame.error,
            });
        }
    }

    fn note_output(&mut self, of: Subject, succeeded: bool, output: &str) {
        let captured = self.plan.command(of.command).and_then(|command| {
            let capture = command.capture.as_ref().filter(|_| succeeded)?;
            let value = capture::read(output, capture.format).unwrap_or_else(|_| output.into());
            Some((capture.name.clone(), value))
        });
        if self.plan.call(of.step).is_some() {
            if let Some(state) = self.step_mut(of.step) {
                state.outputs.insert(of.item, output.to_owned());
            }
            return;
        }
        let scope = if self.plan.is_map(of.step) {
            let active = self.active_mut(of);
            active.map(|active| &mut **active.scope.get_or_insert_with(Box::default))
        } else {
            Some(&mut self.scope)
        };
        if let Some(Scope {
            captured: values,
            outputs,
        }) = scope
        {
            values.extend(captured);
            outputs.insert(of.command, (succeeded, output.to_owned()));
        }
    }

    /// An item is touched for the first time.
    pub(super) fn touch(&mut self, of: Subject) {
        if let Some(step) = self.step_mut(of.step)
            && step.items.get(of.item) == Some(Item::Pending)
        {
            let mut active = Active::new(of.command, Timestamp::ZERO);
            active.round = active.round.saturating_add(step.again);
            step.items.begin(of.item, active);
            step.pass(of.item);
        }
    }

    pub(super) fn wait(&mut self, of: Subject, due: Timestamp) {
        self.stop_waiting(of);
        if let Some(active) = self.active_mut(of) {
            active.doing = Doing::Waiting(due);
            active.set_expires(None);
            if let Some(step) = self.step_mut(of.step) {
                step.waiting.insert(due, of.item);
            }
        }
        self.share(of);
    }

    /// Many items may wait or be held like this one.
    pub(super) fn share(&mut self, of: Subject) {
        let step = usize::try_from(of.step).ok();
        let step = step.and_then(|step| self.steps.get_mut(step));
        if let Some(active) = step.and_then(|step| step.items.active_mut(of.item)) {
            self.alike.share(active);
        }
    }

    /// An item neither waits nor is held any more.
    pub(super) fn stop_waiting(&mut self, of: Subject) {
        let Some(active) = self.active_mut(of) else {
            return;
        };
        let doing = active.doing;
        if !matches!(doing, Doing::Waiting(_) | Doing::Held) {
            return;
        }
        active.doing = Doing::Undecided;
        if let Some(step) = self.step_mut(of.step) {
            if let Doing::Waiting(due) = doing {
                step.waiting.remove(due, of.item);
            } else {
                step.held.remove(of.item);
            }
        }
    }

    fn stop_running(&mut self, of: Subject) {
        let Some(active) = self.active_mut(of) else {
            return;
        };
        let Doing::Running(start) = active.doing else {
            return;
        };
        active.doing = Doing::Undecided;
        self.running.remove(&start);
        self.accepted.remove(&start);
        self.passes.remove(&start);
        if let Some(step) = self.step_mut(of.step) {
            step.running = step.running.saturating_sub(1);
        }
    }

    pub(super) fn charge(&mut self, of: Subject) {
        let Some(mut pool) = self.pool else { return };
        if mutant::is(Mutant::PoolForgotten) && self.run > 1 {
            return;
        }
        if let Some(active) = self.active_mut(of) {
            pool.consumed = pool.consumed.saturating_add(1);
            active.charged = active.charged.saturating_add(1);
            self.pool = Some(pool);
        }
    }

    fn settle(&mut self, step: u32, item: u32, settled: Settled) {
        let of = Subject {
            step,
            item,
            command: 0,
            attempt: 0,
        };
        self.stop_waiting(of);
        self.stop_running(of);
        if let Some(state) = self.step_mut(step)
            && let Some(Item::Pending | Item::Active(_)) = state.items.get(item)
        {
            state.items.settle(item, settled);
            state.pass(item);
            let count = match settled {
                Settled::Succeeded => &mut state.succeeded,
                Settled::Dead(_) if mutant::is(Mutant::DeadLetterLost) => &mut state.skipped,
                Settled::Dead(_) => &mut state.dead,
                Settled::Skipped(_) => &mut state.skipped,
                Settled::Missing(_) => &mut state.missing,
            };
            *count = count.saturating_add(1);
        }
        self.leave_step(step);
    }

    pub(super) fn step_mut(&mut self, step: u32) -> Option<&mut StepState> {
        self.steps.get_mut(usize::try_from(step).ok()?)
    }

    pub(super) fn active_mut(&mut self, of: Subject) -> Option<&mut Active> {
        self.step_mut(of.step)?.items.active_mut(of.item)
    }
}
