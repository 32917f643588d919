//! [`Job::apply`], the only function that changes a job. It cannot fail: a stored event is a fact.
//!
//! An event about a step or item that does not exist, which only a damaged or foreign journal can hold,
//! changes nothing; `law` reports the inconsistency. Nothing here reads a clock or decides what follows.

use std::sync::Arc;

use undaunted_policy::{FailureCause, Pool, PoolLimits, Reason, Timestamp};

use super::complete::JobFailure;
use super::item::{ActiveItem, Activity, HandlerFrame, ItemScope, ItemState, SettledItem};
use super::starts::StartPace;
use super::state::{Job, JobStage, stored_plan};
use super::step::{StepStage, StepState};
use crate::capture;
use crate::event::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, CommandStopped, Event, ImportedCommand,
    ItemEvent, JobEvent, JobResumed, NewItem, PassedDeadline, PoolChange, Record, ResultArrived,
    RetryScheduled, StepEvent, StoredText, WorkflowText,
};
use crate::id::{CommandId, ItemId, StartId, StepId};
use crate::mutant::{self, Mutant};
use crate::plan::Successor;
use crate::workflow::{MaxParallel, StepWork};

/// How many bytes of an unshared error an item keeps.
const MAX_ERROR: usize = 200;

impl Job {
    pub fn apply(&mut self, record: &Record) {
        let left = self.times.run_until;
        self.times.last_at = record.at;
        if !record.event.may_be_requested() {
            self.times.run_until = record.at;
        }
        match &record.event {
            Event::Job(event) => self.apply_to_job(event, left, record.at),
            Event::Step(event) => self.apply_to_step(event, record.at),
            Event::Item(event) => self.apply_to_item(event, record.at),
            // Breakers are not part of jobs; jobs of earlier releases recorded their changes.
            Event::Breaker(_) => {}
        }
    }

    fn apply_to_job(&mut self, event: &JobEvent, left: Timestamp, now: Timestamp) {
        match event {
            // `Job::begin` has read the submission.
            JobEvent::Submitted(_) => {}
            JobEvent::Resumed(resumed) => self.resumed(resumed, left, now),
            JobEvent::TextKept { text } => self.texts.keep(text),
            JobEvent::Stopping { reason } => {
                self.stage = JobStage::Stopping(*reason);
                self.failures.stopped = Some(*reason);
            }
            JobEvent::Completed(_) => self.end(JobStage::Completed, now),
            JobEvent::Partial(_) => self.end(JobStage::Partial, now),
            JobEvent::Failed(_) => self.end(JobStage::Failed, now),
            JobEvent::Cancelled(_) => self.end(JobStage::Cancelled, now),
            JobEvent::Suspended => self.stage = JobStage::Suspended,
            JobEvent::PolicyChanged { text, pool, passed, .. } => {
                self.note_passed(passed.iter().flatten());
                self.change_pool(*pool);
                self.policy_changed(text);
            }
            JobEvent::StateImported { commands, correlations, .. } => {
                let correlations = correlations.as_deref().unwrap_or_default();
                self.import(commands.iter().map(ImportedCommand::without_history), correlations);
            }
            JobEvent::Redriven { reduce } => {
                self.renew_deadline(now);
                self.rounds = self.rounds.saturating_add(1);
                self.times.ended_at = None;
                self.reopen(*reduce);
            }
            JobEvent::StartsSpaced { every } => {
                self.starts.pace = every.map(|every| StartPace { every, last: None });
            }
            JobEvent::Paused => self.times.paused = Some(now),
            JobEvent::Unpaused { away } => self.unpause(*away, now),
            JobEvent::PoolToppedUp { total, per_item, .. } => {
                if let Some(pool) = &mut self.pool {
                    pool.limits.total = *total;
                    pool.limits.per_item = per_item.unwrap_or(pool.limits.per_item);
                }
            }
        }
    }

    fn apply_to_step(&mut self, event: &StepEvent, now: Timestamp) {
        match event {
            StepEvent::Started { step, start } => self.step_started(*step, *start, now),
            StepEvent::ItemsRead { step, items, last, .. } => self.items_read(*step, items, *last),
            StepEvent::InputFailed { step, reason, error, .. } => {
                self.close(*step, StepStage::Failed);
                // An input command that was ended by a cancellation did not fail the job. One that the deadline ended
                // has the error to show.
                if self.failures.stopped.is_none() || *reason == Reason::Deadline {
                    self.note_failure(*step, *reason, error);
                }
            }
            StepEvent::Completed { step } => self.complete(*step),
            StepEvent::Failed { step } => self.close(*step, StepStage::Failed),
            StepEvent::CompletionReached(reached) => self.completion_reached(reached),
            StepEvent::Skipped { step } => self.close(*step, StepStage::Skipped),
            StepEvent::Unreachable { step, missing } => self.mark_unreachable(*step, missing),
            StepEvent::AttributeSet { step, name, value, unused } => {
                if *unused != Some(true) {
                    self.set_attribute(*step, name, value);
                }
            }
        }
    }

    fn apply_to_item(&mut self, event: &ItemEvent, now: Timestamp) {
        let item = event.item();
        match event {
            ItemEvent::AttemptStarted(started) => self.attempt_started(started, now),
            ItemEvent::AttemptSucceeded(succeeded) => self.attempt_succeeded(succeeded),
            ItemEvent::AttemptFailed(failed) => self.attempt_failed(failed),
            ItemEvent::AttemptAccepted { until, .. } => self.attempt_accepted(item, *until, now),
            ItemEvent::RetryScheduled(retrying) => self.retry_scheduled(retrying),
            ItemEvent::CommandStopped(stopped) => self.command_stopped(stopped),
            ItemEvent::CommandRepeated { .. } => self.command_repeated(item),
            ItemEvent::CommandRecovered { next, .. } => self.command_recovered(item, *next),
            ItemEvent::Succeeded { .. } => self.settle(item, SettledItem::Succeeded),
            ItemEvent::DeadLettered { of, reason, error } => {
                self.note_failure(item.step, *reason, error);
                self.keep_dead_letter(*of);
                self.settle(item, SettledItem::Dead(*reason));
            }
            ItemEvent::Skipped { reason, .. } => {
                let without = |state: &StepState| state.is_without(item.index);
                let settled = if self.step(item.step).is_some_and(without) {
                    SettledItem::Missing(*reason)
                } else {
                    SettledItem::Skipped(*reason)
                };
                self.settle(item, settled);
            }
            ItemEvent::Redriven { .. } => self.redrive(item),
            ItemEvent::Dropped { .. } => self.forget(item),
            ItemEvent::Held(held) => self.held(held, now),
            ItemEvent::Released(_) => self.stop_waiting(item),
            ItemEvent::LateResult(late) => self.late_result(late),
            ItemEvent::ResultArrived(arrived) => self.result_arrived(arrived),
            ItemEvent::StartReserved(reserved) => self.reserve(reserved, now),
            ItemEvent::ReservationWithdrawn(withdrawn) => self.withdraw(withdrawn.start),
        }
    }

    fn resumed(&mut self, resumed: &JobResumed, last: Timestamp, now: Timestamp) {
        let away = u64::try_from(resumed.away.as_nanos()).unwrap_or(u64::MAX);
        // The process may have been seen alive after the last record.
        let left = last.max(Timestamp::from_nanos(now.as_nanos().saturating_sub(away)));
        let began = std::mem::replace(&mut self.times.resumed_at, now);
        self.run = resumed.run;
        if resumed.planned {
            // The clock already stood still; unpausing must not count that time again.
            let paused = self.times.paused;
            self.times.paused = paused.map(|since| since.after(resumed.away).min(now));
        }
        if self.stage == JobStage::Suspended {
            self.stage = JobStage::Running;
        }
        for step in &mut self.steps {
            step.resume(resumed, [began, left, now]);
        }
    }

    fn note_passed<'p>(&mut self, passed: impl Iterator<Item = &'p PassedDeadline>) {
        for PassedDeadline { step, at } in passed {
            match step {
                None => self.times.passed = Some(*at),
                Some(step) => {
                    if let Some(state) = self.step_mut(*step) {
                        state.passed = Some(*at);
                    }
                }
            }
        }
    }

    fn change_pool(&mut self, change: Option<PoolChange>) {
        let Some(change) = change else { return };
        let consumed = self.pool.map_or(0, |pool| pool.consumed);
        let limits = change.limits.map(|(total, per_item)| PoolLimits { total, per_item });
        self.pool = limits.map(|limits| Pool { limits, consumed });
    }

    fn policy_changed(&mut self, text: &WorkflowText) {
        let plan = text.plan().map_or_else(|| stored_plan(&self.submitted, text), Ok);
        // The text was checked before it was recorded; a release that refuses it keeps the old plan.
        let Ok(plan) = plan else { return };
        let submitted = Arc::make_mut(&mut self.submitted);
        submitted.text = WorkflowText::checked(text.shared(), Arc::clone(&plan));
        for (step, width) in &mut submitted.parallel {
            let found = plan.workflow().steps.get(step.position());
            // A variable keeps the value it had when the job was submitted.
            if let Some(StepWork::Map(map)) = found.map(|found| &found.work)
                && let MaxParallel::Number(number) = map.max_parallel
            {
                *width = number;
            }
        }
        self.plan = plan;
        self.hold_by_changed_settings();
    }

    fn items_read(&mut self, step: StepId, items: &[NewItem], last: bool) {
        let known = self.step(step).map_or(0, |state| state.items.len());
        if let Some(state) = self.step_mut(step) {
            for item in items {
                state.items.push(item);
            }
            if last {
                state.stage = StepStage::Running;
            }
        }
        self.start_imported(step, known);
    }

    /// Keeps the failure that the report shows: the one that ends the job, else the first dead letter of its
    /// map.
    fn note_failure(&mut self, step: StepId, reason: Reason, error: &StoredText) {
        let known = self.failures.failure.as_ref().map(|failure| failure.reason);
        let is_cut_off = reason == Reason::Deadline && self.stops_at_deadline() && known != Some(reason);
        if !self.plan.is_map(step) || known.is_none() || is_cut_off {
            let error = error.clone();
            self.failures.failure = Some(JobFailure { reason, error });
        }
    }

    fn step_started(&mut self, step: StepId, start: Option<StartId>, now: Timestamp) {
        let command = self.plan.first(step);
        let only = match command.and_then(|command| self.plan.command(command)) {
            Some(command) if self.plan.is_one(step) => {
                Some(NewItem { identity: command.id.clone(), input: "null".to_owned() })
            }
            _ => None,
        };
        if let Some(start) = start {
            self.starts.use_up(start);
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
        self.start_imported(step, 0);
    }

    fn attempt_started(&mut self, started: &AttemptStarted, now: Timestamp) {
        let (of, item) = (started.of, started.of.item());
        self.starts.use_up(started.start);
        self.withdraw(started.start);
        let now = started.began.unwrap_or(now);
        self.activate(item, of.command);
        if self.active_mut(item).is_none() {
            return;
        }
        self.starts.running.insert(started.start, item);
        if let Some(pace) = &mut self.starts.pace {
            pace.last = Some(now);
        }
        if let Some(pass) = &started.pass {
            let breaker = self.texts.read(&pass.breaker).into();
            self.starts.passes.insert(started.start, (breaker, pass.ticket()));
        }
        if self.plan.is_main(of.command) {
            self.counts.attempts = self.counts.attempts.saturating_add(1);
            let retry = u64::from(of.attempt.0 > 1);
            self.counts.retries = self.counts.retries.saturating_add(retry);
        }
        self.stop_waiting(item);
        let began = self.active(item).and_then(ActiveItem::began);
        if let Some(limit) = self.attempt_limit(of.step, of.command, began, now) {
            self.starts.limits.insert(started.start, limit);
        }
        let handled = self.plan.handled_by(of.command);
        let step = self.steps.get_mut(of.step.position());
        if let Some(active) = step.and_then(|step| step.items.active_mut(of.index)) {
            self.shared_positions.start(active, of.attempt.0);
            // Only the command of a handler changes more of its position, which may be shared.
            if handled.is_some()
                && let Some(frame) = active.frames.iter_mut().rfind(|frame| Some(frame.command) == handled)
            {
                frame.handled.get_or_insert_default().insert(of.command, of.attempt.0);
            }
            active.activity = Activity::Running(started.start);
            active.set_began(began.or(Some(now)));
            active.set_expires(None);
        }
        if let Some(step) = self.step_mut(of.step) {
            step.running = step.running.saturating_add(1);
        }
    }

    fn attempt_accepted(&mut self, item: ItemId, until: Timestamp, now: Timestamp) {
        if let Some(active) = self.active(item)
            && let Activity::Running(start) = active.activity
        {
            let limit = self.result_limit(item.step, active, now);
            self.starts.limits.insert(start, limit);
            self.starts.accept(start, until);
        }
    }

    fn attempt_succeeded(&mut self, succeeded: &AttemptSucceeded) {
        let item = succeeded.of.item();
        self.stop_running(item);
        if let Some(active) = self.active_mut(item)
            && active.repeated().is_some()
        {
            let frame = active.frames.pop();
            self.note_recovery(frame);
        }
        // An item that ends with this success has no command left that could refer to the output.
        let ends =
            self.plan.is_map(item.step) && self.plan.after_success(succeeded.of.command) == Successor::Item;
        if let Some(output) = succeeded.output.as_ref().filter(|_| !ends) {
            self.note_output(succeeded.of, true, output);
        }
        self.turn_to_next(item, succeeded.next);
    }

    fn attempt_failed(&mut self, failed: &AttemptFailed) {
        self.stop_running(failed.of.item());
        if let Some(active) = self.active_mut(failed.of.item()) {
            active.cause = Some(failed.cause);
            active.limit = failed.limit;
            // A million items may wait, each with a text of its own.
            active.error = failed.error.clone().map(|error| error.brief(MAX_ERROR));
        }
        if let Some(output) = &failed.output {
            self.note_output(failed.of, false, output);
        }
    }

    /// The item waits until the next event of the same decision settles it.
    fn result_arrived(&mut self, arrived: &ResultArrived) {
        if let Some(output) = &arrived.output {
            self.note_output(arrived.of, true, output);
        }
        if let Some(error) = &arrived.error
            && let Some(active) = self.active_mut(arrived.of.item())
        {
            active.cause = Some(FailureCause::Refused);
            active.limit = None;
            active.error = Some(error.clone().brief(MAX_ERROR));
        }
    }

    fn retry_scheduled(&mut self, retrying: &RetryScheduled) {
        let (of, item) = (retrying.of, retrying.of.item());
        if self.plan.is_main(of.command) {
            self.counts.delay = self.counts.delay.saturating_add(retrying.delay);
        }
        self.charge(item);
        let early = u64::from(mutant::is(Mutant::EarlyRetry)).saturating_mul(100_000_000);
        let due = Timestamp::from_nanos(retrying.due.as_nanos().saturating_sub(early));
        if let Some(active) = self.active_mut(item) {
            active.set_progress(active.progress().after_wait(retrying.delay));
        }
        self.wait(item, due);
        if let Some(active) = self.active_mut(item) {
            active.set_expires(retrying.arithmetic.expires);
        }
    }

    fn command_stopped(&mut self, stopped: &CommandStopped) {
        let (of, item) = (stopped.of, stopped.of.item());
        self.activate(item, of.command);
        self.stop_waiting(item);
        let Some(handler) = stopped.handler else { return };
        if let Some(active) = self.active_mut(item) {
            let is_repeated = active.repeated().is_some();
            let before = if is_repeated { active.frames.pop() } else { None };
            let (rounds, made) = before.map_or((0, None), |frame| (frame.rounds, frame.handled));
            let frame = HandlerFrame {
                command: active.command,
                attempts: active.attempts,
                progress: active.progress(),
                rounds: rounds.saturating_add(1),
                reason: stopped.reason,
                error: stopped.error.clone(),
                handled: made,
            };
            active.frames.push(frame);
        }
        self.turn_to_next(item, Some(handler));
    }

    fn command_repeated(&mut self, item: ItemId) {
        self.charge(item);
        if let Some(active) = self.active_mut(item)
            && let Some(frame) = active.frames.last().cloned()
        {
            active.command = frame.command;
            active.attempts = frame.attempts;
            active.set_progress(frame.progress);
        }
        self.wait(item, Timestamp::ZERO);
    }

    fn command_recovered(&mut self, item: ItemId, next: Option<CommandId>) {
        let frame = self.active_mut(item).and_then(|active| active.frames.pop());
        self.note_recovery(frame);
        self.turn_to_next(item, next);
    }

    /// Keeps a stop that a handler recovered, for the report.
    fn note_recovery(&mut self, frame: Option<HandlerFrame>) {
        if let Some(frame) = frame {
            self.failures.recovered.get_or_insert(JobFailure { reason: frame.reason, error: frame.error });
        }
    }

    fn note_output(&mut self, of: AttemptId, succeeded: bool, output: &str) {
        let captured = self.plan.command(of.command).and_then(|command| {
            let capture = command.capture.as_ref().filter(|_| succeeded)?;
            let value = capture::read(output, capture.format).unwrap_or_else(|_| output.into());
            Some((capture.name.clone(), value))
        });
        if self.plan.call(of.step).is_some() {
            if let Some(state) = self.step_mut(of.step) {
                state.outputs.insert(of.index, output.to_owned());
            }
            return;
        }
        let scope = if self.plan.is_map(of.step) {
            let active = self.active_mut(of.item());
            active.map(|active| &mut **active.scope.get_or_insert_with(Box::default))
        } else {
            Some(&mut self.scope)
        };
        if let Some(ItemScope { captured: values, outputs }) = scope {
            values.extend(captured);
            outputs.insert(of.command, (succeeded, output.to_owned()));
        }
    }

    pub(super) fn activate(&mut self, item: ItemId, command: CommandId) {
        if let Some(step) = self.steps.get_mut(item.step.position())
            && step.items.get(item.index) == Some(ItemState::Pending)
        {
            let mut active = self.shared_positions.begin_item(command);
            if step.again > 0 {
                active.round = active.round.saturating_add(step.again);
            }
            step.items.begin(item.index, active);
            if item.index > step.cursor {
                // The starts of the items before it are reserved, and may be withdrawn.
                step.ahead.insert(item.index);
            } else {
                step.pass(item.index);
            }
        }
    }

    pub(super) fn wait(&mut self, item: ItemId, due: Timestamp) {
        self.stop_waiting(item);
        if let Some(active) = self.active_mut(item) {
            active.activity = Activity::Waiting(due);
            active.set_expires(None);
            if let Some(step) = self.step_mut(item.step) {
                step.waiting.insert(due, item.index);
            }
        }
        self.share(item);
    }

    /// Shares the position of an item that waits or is held, because many items may be at an equal one.
    pub(super) fn share(&mut self, item: ItemId) {
        let step = self.steps.get_mut(item.step.position());
        if let Some(active) = step.and_then(|step| step.items.active_mut(item.index)) {
            self.shared_positions.share(active);
        }
    }

    pub(super) fn stop_waiting(&mut self, item: ItemId) {
        if let Some(active) = self.active_mut(item)
            && let activity @ (Activity::Waiting(_) | Activity::Held) = active.activity
        {
            active.activity = Activity::Undecided;
            if let Some(step) = self.step_mut(item.step) {
                if let Activity::Waiting(due) = activity {
                    step.waiting.remove(due, item.index);
                } else {
                    step.held.remove(item.index);
                }
            }
        }
    }

    fn stop_running(&mut self, item: ItemId) {
        if let Some(active) = self.active_mut(item)
            && let Activity::Running(start) = active.activity
        {
            active.activity = Activity::Undecided;
            self.starts.end(start);
            if let Some(step) = self.step_mut(item.step) {
                step.running = step.running.saturating_sub(1);
            }
        }
    }

    fn end(&mut self, stage: JobStage, now: Timestamp) {
        self.stage = stage;
        // A late result may change how a job has ended, but not when.
        self.times.ended_at.get_or_insert(now);
    }

    pub(super) fn charge(&mut self, item: ItemId) {
        let Some(mut pool) = self.pool else { return };
        if mutant::is(Mutant::PoolIgnoredAfterResume) && self.run > 1 {
            return;
        }
        if let Some(active) = self.active_mut(item) {
            pool.consumed = pool.consumed.saturating_add(1);
            active.charged = active.charged.saturating_add(1);
            self.pool = Some(pool);
        }
    }

    fn settle(&mut self, item: ItemId, settled: SettledItem) {
        self.succeeded_before.remove(&item);
        self.stop_waiting(item);
        self.stop_running(item);
        self.note_heard(item);
        if let Some(state) = self.step_mut(item.step)
            && let Some(ItemState::Pending | ItemState::Active(_)) = state.items.get(item.index)
        {
            state.items.settle(item.index, settled);
            state.pass(item.index);
            let count = match settled {
                SettledItem::Succeeded => &mut state.succeeded,
                SettledItem::Dead(_) if mutant::is(Mutant::DeadLetterNotCounted) => &mut state.skipped,
                SettledItem::Dead(_) => &mut state.dead,
                SettledItem::Skipped(_) => &mut state.skipped,
                SettledItem::Missing(_) => &mut state.missing,
            };
            *count = count.saturating_add(1);
        }
        self.forget_left_step(item.step);
    }

    /// Keeps that the service has reported a failure of an item that it may report again.
    fn note_heard(&mut self, item: ItemId) {
        let cause = self.active(item).and_then(|active| active.cause);
        if cause == Some(FailureCause::Refused)
            && self.plan.reports_later(item.step)
            && let Some(state) = self.step_mut(item.step)
        {
            state.heard.insert(item.index);
        }
    }

    pub(super) fn step_mut(&mut self, step: StepId) -> Option<&mut StepState> {
        self.steps.get_mut(step.position())
    }

    pub(super) fn active_mut(&mut self, item: ItemId) -> Option<&mut ActiveItem> {
        self.step_mut(item.step)?.items.active_mut(item.index)
    }
}
