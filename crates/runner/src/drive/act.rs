//! Decisions: committing their records, and carrying out the effects of records that are on disk.

use undaunted_engine::breaker::BreakerReport;
use undaunted_engine::decide::react_into;
use undaunted_engine::effect::{Effect, wanted_by};
use undaunted_engine::id::{ItemId, StartId, StepId};
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::task::{InputTask, Task, TaskWork, ValueFiles, input_task, receipt_token};
use undaunted_engine::workflow::Action;
use undaunted_policy::{FailureCause, FailureClass, Timestamp};
use undaunted_store::{Append, Version};

use super::job_journal::SnapshotOccasion;
use super::{AfterCommit, DeliveryOutcome, DriveError, JobDriver, JobMessage};
use crate::executor::{failed, read_file};
use crate::{ExecutorMessage, failpoint};

impl JobDriver<'_> {
    /// Gives the job an input; the records that follow go with the next batch.
    pub(super) fn decide(&mut self, input: &Input) {
        self.decide_at(input, self.now());
    }

    /// As [`Self::decide`], for a caller that has read the clock.
    pub(super) fn decide_at(&mut self, input: &Input, now: Timestamp) {
        let records = &mut self.journal.pending.records;
        let before = records.len();
        let reports = react_into(&mut self.job, input, now, records);
        if mutant::is(Mutant::ActsBeforeCommit) {
            let decided = records.get(before..).unwrap_or_default();
            let effects: Vec<Effect> = decided.iter().filter_map(wanted_by).collect();
            for effect in effects {
                drop(self.act(effect));
            }
        }
        if !reports.is_empty() {
            let mut cache = self.breakers.borrow_mut();
            cache.report(&self.job, &reports);
            let names = reports.iter().map(BreakerReport::breaker).cloned();
            self.journal.pending.breakers.extend(names);
            self.journal.pending.ends_probe |= reports.iter().any(BreakerReport::ends_probe);
        }
    }

    /// Submits pending records, if there are any, with their facts for breakers.
    pub(super) fn submit_pending(&mut self) {
        if self.breakers.borrow().is_cut_off {
            return;
        }
        if let Some(appends) = self.close_batch() {
            self.submit(appends, self.journal.version);
        }
    }

    pub(super) fn submit(&self, appends: Vec<Append>, reached: Version) {
        let notifier = self.context.notifier.clone();
        self.context.services.store.submit(
            appends,
            Box::new(move |result| {
                failpoint::reach("append-after", reached.0);
                // If the loop no longer runs the job, it ignores this.
                notifier.send_message(JobMessage::Stored(reached, result));
            }),
        );
    }

    /// Submits the result of a probe at once: the next probe, perhaps of another job, must not be
    /// written before it.
    pub(super) fn submit_probe_result(&mut self) {
        if self.journal.pending.ends_probe {
            self.submit_pending();
        }
    }

    /// Runs an action when everything decided so far is on disk.
    pub(super) fn when_written(&mut self, action: AfterCommit) {
        if let Some(action) = self.journal.when_written(action) {
            self.written(action);
        }
    }

    pub(super) fn written(&mut self, action: AfterCommit) {
        match action {
            AfterCommit::Trust => self.executors.programs.trust(),
            // The sender may no longer wait.
            AfterCommit::Answer(reply) => drop(reply.send(DeliveryOutcome::Taken)),
        }
    }

    /// The appends of the pending batch: records of the job, and behind them facts for breakers.
    fn close_batch(&mut self) -> Option<Vec<Append>> {
        let (mut batch, append) = self.journal.close()?;
        let mut appends = vec![append];
        let mut cache = self.breakers.borrow_mut();
        batch.order = cache.next_batch();
        if !batch.breakers.is_empty() {
            let names = std::mem::take(&mut batch.breakers);
            for (name, append) in cache.seal(&self.job, self.journal.version, &names) {
                appends.push(append);
                batch.facts.push(name);
            }
        }
        drop(cache);
        batch.saved = self.snapshot_if_due(SnapshotOccasion::Batch);
        self.journal.track(batch);
        failpoint::reach("append-before", self.journal.version.0);
        Some(appends)
    }
}

impl JobDriver<'_> {
    pub(super) fn act(&mut self, effect: Effect) -> Result<(), DriveError> {
        match effect {
            Effect::Begin { start, item } => return self.begin_attempt(start, item),
            Effect::Reserve { start, item } => return self.hand_over(start, item),
            Effect::ReadInput { step, start } => self.read_input(step, start),
            Effect::EndStep { step } => self.end_step(step),
            Effect::EndAll => self.end_all(),
        }
        Ok(())
    }

    /// Ends all running attempts, including accepted ones whose results would come later.
    pub(super) fn end_all(&mut self) {
        self.executors.programs.cancel_all();
        let running = self.job.starts.running.keys().copied();
        let others = running.filter(|start| !action_of(&self.job, *start).is_some_and(Action::is_program));
        for start in others.collect::<Vec<StartId>>() {
            self.cancel(start);
        }
    }

    /// Ends the attempts of a step that completed without them, unless they may continue.
    fn end_step(&mut self, step: StepId) {
        let running = self.job.starts.running.iter();
        let running = running.filter(|(_, item)| item.step == step && self.job.ends(**item));
        for start in running.map(|(start, _)| *start).collect::<Vec<StartId>>() {
            self.cancel(start);
        }
    }

    /// Cancels an attempt. An accepted one ends at once: its result is no longer waited for. One that waits for
    /// a sub-flow ends when the sub-flow is cancelled, too.
    fn cancel(&mut self, start: StartId) {
        let job = &self.job;
        let action = action_of(job, start);
        let must_end = job.starts.running.get(&start).is_some_and(|item| job.ends(*item));
        if must_end && matches!(action, Some(Action::SubFlow(_))) {
            return self.executors.sub_flows.abandon(start);
        }
        let end = self.executors.of(action).cancel(start, &self.context);
        let end = end.or_else(|| {
            let error = "cancelled while waiting for the result";
            job.starts.accepted.contains_key(&start).then(|| failed(start, FailureCause::Interrupted, error))
        });
        if let Some(end) = end {
            self.attempt_ended(Box::new(end));
        }
    }

    pub(super) fn begin_attempt(&mut self, start: StartId, item: ItemId) -> Result<(), DriveError> {
        if !self.job.starts.running.contains_key(&start) {
            return Ok(());
        }
        if self.job.ends(item) {
            self.end_unbegun(start, item);
            return Ok(());
        }
        // A program that begins now would delay the shutdown.
        let is_program = action_of(&self.job, start).is_some_and(Action::is_program);
        if is_program && self.context.shutdown.is_immediate() {
            self.context.shutdown.leave_unbegun(start);
            return Ok(());
        }
        let prepared = match self.starter.take(start) {
            Some(task) => Ok(task),
            None if self.needs_results(item.step) => {
                self.starter.awaiting_results.push((start, item));
                self.read_outputs();
                return Ok(());
            }
            None => self.task(item, self.now()),
        };
        match prepared {
            Ok(task) => {
                if task.reads_item_file {
                    self.write_item(item)?;
                }
                self.begin_task(start, task);
            }
            // Its start is on record, but an input of the command no longer exists.
            Err(why) => self.context.fail(start, FailureCause::Other(FailureClass::Permanent), why),
        }
        Ok(())
    }

    /// Ends an attempt on record as started that must not begin. A sub-flow that an earlier process has begun
    /// for it is cancelled first.
    fn end_unbegun(&mut self, start: StartId, item: ItemId) {
        let task = self.starter.take(start).map_or_else(|| self.task(item, self.now()), Ok);
        if let Ok(Task { work: TaskWork::Flow(flow), .. }) = task {
            return self.executors.sub_flows.abandon_unbegun(start, flow);
        }
        self.context.fail(start, FailureCause::Interrupted, "cancelled before it began");
    }

    fn begin_task(&mut self, start: StartId, task: Task) {
        failpoint::reach("begin-before", start.0);
        self.executors.of(action_of(&self.job, start)).begin(start, task, &self.context);
    }

    pub(super) fn write_item(&self, item: ItemId) -> Result<(), DriveError> {
        let state = self.job.step(item.step);
        let input = state.map_or("null", |state| state.items.input(item.index));
        let path = self.context.folder.item(item);
        let written = self.context.services.machine.write_private(&path, input.as_bytes());
        written.map_err(|source| DriveError::File { path, source })
    }

    pub(super) fn token_of(&self, start: StartId) -> Option<String> {
        let job = &self.job;
        if let Some(reserved) = job.starts.reserved.get(&start) {
            let item = reserved.item;
            let again = job.step(item.step).map_or(0, |state| state.again);
            let command = job.plan().first(item.step)?;
            return Some(receipt_token(job, item, command, again.saturating_add(1)));
        }
        let &item = job.starts.running.get(&start)?;
        let active = job.active(item)?;
        Some(receipt_token(job, item, active.command, active.round))
    }

    fn read_input(&mut self, step: StepId, start: Option<StartId>) {
        let shutdown = &mut self.context.shutdown;
        if let Some(start) = start
            && (shutdown.is_immediate() || (shutdown.is_requested() && mutant::is(Mutant::NeverSuspends)))
        {
            return shutdown.leave_unbegun(start);
        }
        if !self.executors.inputs.begin(step) {
            return;
        }
        let why = match (input_task(&self.job, step, ValueFiles::default()), start) {
            (Ok(Some(InputTask::Run(task))), Some(start)) => return self.begin_task(start, task),
            (Ok(Some(InputTask::File(path))), _) => match self.job.plan().map(step) {
                Some(map) => return read_file(step, map.clone(), path, &self.context),
                None => "the step of the input is not a map".to_owned(),
            },
            (Ok(Some(InputTask::Run(_)) | None), _) => "this release cannot read the input".to_owned(),
            (Err(error), _) => format!("cannot find the input: {error}"),
        };
        let items = Err(why);
        self.context.notifier.send(ExecutorMessage::Items { step, items });
    }
}

/// None for a command that produces the items of a map, and for an attempt that has ended.
pub(super) fn action_of(job: &Job, start: StartId) -> Option<&Action> {
    let &item = job.starts.running.get(&start)?;
    let command = job.plan().command(job.active(item)?.command)?;
    Some(&command.action)
}
