//! Doing what a job asks for. Only records that are on the disk lead here.

use undaunted_engine::effect::Effect;
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::Job;
use undaunted_engine::task::{Files, InputTask, Task, input_task, receipt_token};
use undaunted_engine::workflow::Action;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{Cause, Class};

use super::error::DriveError;
use super::running::Drive;
use crate::executor::{ExecutorMessage, failed, read_file};
use crate::failpoint;

impl Drive<'_> {
    pub(super) fn act(&mut self, effect: Effect) -> Result<(), DriveError> {
        match effect {
            Effect::Begin { start, item } => return self.begin_attempt(start, item),
            Effect::ReadInput { step, start } => self.read_input(step, start),
            Effect::EndStep { step } => self.end_step(step),
            Effect::EndAll => self.end_all(),
        }
        Ok(())
    }

    /// Ends everything that runs, and waits no longer for results that would come later.
    pub(super) fn end_all(&mut self) {
        self.executors.programs.cancel_all();
        let running = self.job.starts.running.keys().copied();
        let others =
            running.filter(|start| !action_of(&self.job, *start).is_some_and(Action::is_program));
        for start in others.collect::<Vec<u64>>() {
            self.cancel(start);
        }
    }

    /// Ends what runs of a step that is complete without it, unless it is left to go on.
    fn end_step(&mut self, step: StepId) {
        let running = self.job.starts.running.iter();
        let running = running.filter(|(_, item)| item.step == step && self.job.ends(**item));
        for start in running.map(|(start, _)| *start).collect::<Vec<u64>>() {
            self.cancel(start);
        }
    }

    /// Ends an attempt. One that was taken on by the other side has ended when it is not waited for.
    fn cancel(&mut self, start: u64) {
        let job = &self.job;
        let action = action_of(job, start);
        let end = self.executors.of(action).cancel(start, &self.context);
        let end = end.or_else(|| {
            let error = "it was ended while its result was waited for";
            let is_accepted = job.starts.accepted.contains_key(&start);
            is_accepted.then(|| failed(start, Cause::Interrupted, error))
        });
        if let Some(end) = end {
            self.attempt_ended(end);
        }
    }

    pub(super) fn begin_attempt(&mut self, start: u64, item: ItemId) -> Result<(), DriveError> {
        if !self.job.starts.running.contains_key(&start) {
            return Ok(());
        }
        if self.job.ends(item) {
            let error = "it was cancelled before it began";
            self.context.end(failed(start, Cause::Interrupted, error));
            return Ok(());
        }
        let prepared = if let Some(task) = self.starter.take(start) {
            Ok(task)
        } else {
            if self.needs_results(item.step) {
                self.read_results()?;
            }
            self.task(item)
        };
        match prepared {
            Ok(task) => {
                if task.reads_item_file {
                    self.write_item(item)?;
                }
                self.begin_task(start, task);
            }
            // It was recorded that it would be made, and it cannot be any more.
            Err(why) => {
                let end = failed(start, Cause::Other(Class::Permanent), why);
                self.context.end(end);
            }
        }
        Ok(())
    }

    fn begin_task(&mut self, start: u64, task: Task) {
        failpoint::reach("begin-before", start);
        let executor = self.executors.of(action_of(&self.job, start));
        executor.begin(start, task, &self.context);
    }

    fn write_item(&self, item: ItemId) -> Result<(), DriveError> {
        let state = self.job.step(item.step);
        let input = state.map_or("null", |state| state.items.input(item.index));
        let path = self.context.folder.item(item);
        let written = self.context.world.machine.keep(&path, input.as_bytes());
        written.map_err(|source| DriveError::File { path, source })
    }

    /// The receipt token of the command that an attempt is of.
    pub(super) fn token_of(&self, start: u64) -> Option<String> {
        let &item = self.job.starts.running.get(&start)?;
        let active = self.job.active(item)?;
        let token = receipt_token(&self.job, item, active.command, active.round);
        Some(token)
    }

    fn read_input(&mut self, step: StepId, start: Option<u64>) {
        let leaving = &mut self.context.leaving;
        if let Some(start) = start
            && (leaving.is_at_once() || (leaving.is_asked() && mutant::is(Mutant::NeverLeaves)))
        {
            return leaving.leave_unbegun(start);
        }
        if !self.executors.inputs.begin(step) {
            return;
        }
        let why = match (input_task(&self.job, step, Files::default()), start) {
            (Ok(Some(InputTask::Run(task))), Some(start)) => return self.begin_task(start, task),
            (Ok(Some(InputTask::File(path))), _) => match self.job.plan().map(step) {
                Some(map) => return read_file(step, map.clone(), path, &self.context),
                None => "the input belongs to no map".to_owned(),
            },
            (Ok(Some(InputTask::Run(_)) | None), _) => {
                "the input cannot be read by this release".to_owned()
            }
            (Err(error), _) => format!("the input cannot be found: {error}"),
        };
        let items = Err(why);
        let message = ExecutorMessage::Items { step, items };
        self.context.notifier.send(message);
    }
}

/// What the command of an attempt does; nothing if it gives the items of a map, or is over.
pub(super) fn action_of(job: &Job, start: u64) -> Option<&Action> {
    let &item = job.starts.running.get(&start)?;
    let active = job.active(item)?;
    let command = job.plan().command(active.command)?;
    Some(&command.action)
}
