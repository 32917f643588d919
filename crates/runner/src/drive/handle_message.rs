//! Handling the messages to a job.

use undaunted_engine::effect;
use undaunted_engine::event::{Event as Fact, JobEvent, StepEvent};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::StepStage;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_policy::FailureCause;
use undaunted_store::Version;

use super::act::action_of;
use super::error::DriveError;
use super::job_journal::JournalBatch;
use super::message::JobMessage;
use super::running::JobDriver;
use crate::executor::{ExecutorMessage, failed, of_command, of_items};
use crate::failpoint;

impl JobDriver<'_> {
    pub(super) fn handle(&mut self, message: JobMessage) -> Result<(), DriveError> {
        match message {
            JobMessage::Stored(reached, result) => self.answered(reached, result)?,
            JobMessage::Executor(message) => self.handle_executor_message(message)?,
            JobMessage::Outputs(read) => self.handle_outputs(read)?,
            JobMessage::Reported(report) => self.handle_report(report),
            JobMessage::Interrupt => self.interrupted(),
            JobMessage::Cancel => self.decide(&Input::Cancel),
        }
        self.submit_probe_result();
        Ok(())
    }

    /// Carries out the consequences of records, now that they are on disk.
    pub(super) fn stored(&mut self, mut batch: JournalBatch, reached: &[Version]) -> Result<(), DriveError> {
        let at = batch.reached();
        if !batch.facts.is_empty() {
            let facts = batch.facts.iter().zip(1..);
            let facts = facts.map(|(name, place)| (name, reached.get(place).copied()));
            let mut cache = self.breakers.borrow_mut();
            cache.written(&self.job, at, facts);
            let turned = cache.take_transitions(Some(&self.job.shared_id()));
            drop(cache);
            for turned in &turned {
                self.notify_transition(turned);
            }
        }
        if let Some(saved) = batch.saved.take() {
            self.journal.write_saved(self.context.services, at, saved);
        }
        for action in batch.after_commit {
            self.written(action);
        }
        let mut reads = false;
        for (seq, record) in (batch.after.0.saturating_add(1)..).zip(&batch.records) {
            self.observer.recorded(&self.job, seq, record);
            reads |= matches!(record.event, Fact::Step(StepEvent::Started { .. }));
            if record.event == Fact::Job(JobEvent::Suspended) {
                failpoint::reach("suspend-after", 1);
            }
            if let Some(effect) = effect::wanted_by(record) {
                self.act(effect)?;
            }
        }
        if reads {
            for effect in effect::wanted_inputs(&self.job) {
                self.act(effect)?;
            }
        }
        for start in batch.ended {
            self.executors.programs.forget(start);
            failpoint::reach("forget-after", start.0);
        }
        Ok(())
    }

    fn handle_executor_message(&mut self, message: ExecutorMessage) -> Result<(), DriveError> {
        match message {
            ExecutorMessage::Began { start, files } => {
                failpoint::reach("begin-after", start.0);
                if let Some(files) = files {
                    self.observer.began(start, files);
                }
            }
            ExecutorMessage::NotBegun(start) => {
                if self.is_unwanted(start) {
                    let error = "cancelled before it began";
                    self.attempt_ended(failed(start, FailureCause::Interrupted, error));
                } else {
                    self.context.shutdown.leave_unbegun(start);
                }
            }
            ExecutorMessage::Accepted(start) => {
                let action = action_of(&self.job, start);
                self.executors.of(action).accepted(start);
                self.decide(&Input::Accepted { start });
            }
            ExecutorMessage::Ended(end) => self.attempt_ended(*end),
            ExecutorMessage::Items { step, items } => {
                self.items_read(step, &of_items(step, items));
            }
            ExecutorMessage::Refused(why) => return Err(DriveError::Refused(why)),
            ExecutorMessage::KeeperGone => {
                self.executors.programs.disconnect();
                self.complete()?;
            }
        }
        Ok(())
    }

    /// Whether an attempt was cancelled, rather than left to the process that resumes the job.
    fn is_unwanted(&self, start: StartId) -> bool {
        let place = self.job.starts.running.get(&start);
        place.map_or_else(|| self.job.is_stopping().is_some(), |item| self.job.ends(*item))
    }

    pub(super) fn attempt_ended(&mut self, end: AttemptEnd) {
        let start = end.start;
        self.journal.pending.ended.push(start);
        if mutant::is(Mutant::ResultDiscardedBeforeCommit) {
            self.executors.programs.forget(start);
        }
        self.executors.ended(start);
        if let Some(step) = self.input_of(start) {
            if let Some(map) = self.job.plan().map(step) {
                let read = of_command(step, map, &end);
                self.items_read(step, &read);
            }
            return;
        }
        self.decide(&Input::Ended(Box::new(end)));
        // No record is written for an end that is on record already, or is being written.
        if self.journal.pending.records.is_empty() {
            self.journal.pending.ended.pop();
            if !self.journal.writes_end_of(start) {
                self.executors.programs.forget(start);
            }
        }
    }

    /// The step whose input command this start runs.
    pub(super) fn input_of(&self, start: StartId) -> Option<StepId> {
        let mut steps = self.job.open_steps();
        let (step, _) = steps.find(|(_, state)| state.stage == StepStage::Reading(Some(start)))?;
        Some(step)
    }

    fn items_read(&mut self, step: StepId, read: &Input) {
        failpoint::reach("items-read", 1);
        self.executors.inputs.forget(step);
        self.decide(read);
    }

    fn interrupted(&mut self) {
        let asked = self.context.shutdown.interrupt();
        let running = self.job.starts.running.len();
        let here = running.saturating_sub(self.job.starts.accepted.len());
        self.observer.leaving(asked, here);
        if self.context.shutdown.is_immediate() {
            self.end_all();
        }
    }
}
