//! Handling what is sent to a job: messages, the fate of its batches, requests of other processes, and results of
//! accepted attempts.

use undaunted_engine::effect;
use undaunted_engine::event::{Event as Fact, ItemEvent, JobEvent, StepEvent};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{JobStage, StepStage};
use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::task::{TokenStatus, find_token};
use undaunted_policy::FailureCause;
use undaunted_store::{AppendError, StoreRequest, Version};

use super::job_journal::JournalBatch;
use super::message::{AttemptReport, TokenQuestion};
use super::{AfterCommit, DeliveryOutcome, DriveError, JobDriver, JobMessage, TokenOwner, action_of};
use crate::executor::{failed, of_command, of_items};
use crate::request::ReadRequest;
use crate::{ArrivedResult, ExecutorMessage, breakers, failpoint};

impl JobDriver<'_> {
    pub(super) fn handle(&mut self, message: JobMessage) -> Result<(), DriveError> {
        match self.defer(message)? {
            Some(message) => self.handle_now(message),
            None => Ok(()),
        }
    }

    pub(super) fn handle_now(&mut self, message: JobMessage) -> Result<(), DriveError> {
        match message {
            JobMessage::Stored(reached, result) => self.answered(reached, result)?,
            JobMessage::Executor(messages) => {
                for message in messages {
                    self.handle_executor_message(message)?;
                }
            }
            JobMessage::Outputs(read) => self.handle_outputs(read)?,
            JobMessage::Reported(report) => self.handle_report(report),
            JobMessage::FindToken(TokenQuestion { step, token, reply }) => {
                // The sender may no longer wait.
                let _ = reply.send(TokenOwner::Here(find_token(&self.job, &step, &token)));
            }
            JobMessage::Interrupt => self.interrupted(),
            JobMessage::Cancel => self.decide(&Input::Cancel),
            JobMessage::PassOn(signal) => self.pass_on(signal),
        }
        self.submit_probe_result();
        Ok(())
    }

    fn pass_on(&mut self, signal: i32) {
        if matches!(self.job.stage, JobStage::Stopping(_)) {
            return self.executors.programs.kill_all();
        }
        self.executors.programs.stop_signal = signal;
        self.decide(&Input::Cancel);
    }

    /// Carries out the consequences of records, now that they are on disk.
    pub(super) fn stored(&mut self, mut batch: JournalBatch, reached: &[Version]) -> Result<(), DriveError> {
        let at = batch.reached();
        if !batch.facts.is_empty() {
            let facts = batch.facts.iter().zip(1..).map(|(name, place)| (name, reached.get(place).copied()));
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
            if matches!(&record.event, Fact::Item(ItemEvent::LateResult(late)) if late.counted) {
                self.starter.forget_results();
            }
            if record.event == Fact::Job(JobEvent::Suspended) {
                failpoint::reach("suspend-after", 1);
            }
            if let Some(effect) = effect::wanted_by(record) {
                self.act(effect)?;
            }
        }
        self.journal.reuse(batch.records);
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
            ExecutorMessage::Began { start, at, files } => {
                failpoint::reach("begin-after", start.0);
                self.begun(start, at);
                if let Some(files) = files {
                    self.observer.began(start, files);
                }
            }
            ExecutorMessage::NotBegun(start) => {
                if self.not_begun(start) {
                    // Its item starts later.
                } else if self.is_unwanted(start) {
                    let error = "cancelled before it began";
                    self.attempt_ended(Box::new(failed(start, FailureCause::Interrupted, error)));
                } else {
                    self.context.shutdown.leave_unbegun(start);
                }
            }
            ExecutorMessage::Accepted(start) => {
                let action = action_of(&self.job, start);
                self.executors.of(action).accepted(start);
                self.decide(&Input::Accepted { start });
            }
            ExecutorMessage::Ended(end) => self.attempt_ended(end),
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

    pub(super) fn attempt_ended(&mut self, end: Box<AttemptEnd>) {
        let start = end.start;
        self.begun(start, end.began);
        self.journal.pending.ended.push(start);
        if mutant::is(Mutant::ResultDiscardedBeforeCommit) {
            self.executors.programs.forget(start);
        }
        self.executors.ended(start);
        if let Some(step) = self.input_of(start) {
            if let Some(map) = self.job.plan().map(step) {
                let limit = end.failure.and_then(|cause| self.job.deadline_that_ended(cause));
                let read = of_command(step, map, &end, limit);
                self.items_read(step, &read);
            }
            return;
        }
        self.decide(&Input::Ended(end));
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
        let here = self.job.starts.running.len().saturating_sub(self.job.starts.accepted.len());
        self.observer.leaving(asked, here);
        if self.context.shutdown.is_immediate() {
            self.end_all();
        }
    }
}

impl JobDriver<'_> {
    pub(super) fn answered(
        &mut self,
        reached: Version,
        result: Result<Vec<Version>, AppendError>,
    ) -> Result<(), DriveError> {
        for (batch, versions) in self.journal.answered(reached, result)? {
            self.stored(batch, &versions)?;
        }
        Ok(())
    }

    /// Submits a batch again whose answer was lost.
    pub(super) fn resubmit(&mut self, order: u64) {
        let Some((append, reached, facts)) = self.journal.resubmit(order) else {
            return;
        };
        let mut appends = vec![append];
        let cache = self.breakers.borrow();
        for name in facts {
            // None if the journal of the breaker was found to have the facts: then the batch stands.
            let sealed = cache.admission.sealed(name, self.job.id(), reached.0);
            let facts = sealed.and_then(|record| breakers::append(name, record).ok());
            appends.extend(facts);
        }
        drop(cache);
        self.submit(appends, reached);
    }

    pub(super) fn handle_requests(&mut self, requests: Vec<StoreRequest>) {
        let requests = self.defer_requests(requests);
        for request in self.journal.unseen(requests) {
            match ReadRequest::read(&request.bytes) {
                Some(ReadRequest::Request(asked)) => self.decide(&asked.input()),
                // Its sender has been answered, so it must count.
                Some(ReadRequest::Report(arrived)) if !mutant::is(Mutant::OfflineResultLost) => {
                    self.handle_result(arrived);
                }
                Some(ReadRequest::Report(_)) | None => {}
            }
            self.journal.take(request.id);
        }
    }
}

impl JobDriver<'_> {
    /// Takes a result and answers its sender. A result that is known already changes nothing.
    pub(super) fn handle_report(&mut self, report: AttemptReport) {
        match self.handle_result(report.arrived) {
            TokenStatus::Unknown => {
                // The sender may no longer wait.
                let _ = report.reply.send(DeliveryOutcome::Unknown);
            }
            // Answered when the result is on disk, since the sender then stops sending it.
            TokenStatus::Running(_)
            | TokenStatus::Waiting(_)
            | TokenStatus::Late(_)
            | TokenStatus::Expired => {
                self.when_written(AfterCommit::Answer(report.reply));
            }
        }
    }

    /// Takes a result without answering. Returns the attempt it was for.
    pub(super) fn handle_result(&mut self, arrived: ArrivedResult) -> TokenStatus {
        let found = find_token(&self.job, &arrived.step, &arrived.token);
        let redact = |text| self.context.secrets.redact(text);
        let result = arrived.result.map(redact).map_err(redact);
        match found {
            TokenStatus::Running(start) => {
                let (output, failure, error) = match result {
                    Ok(output) => (Some(output), None, String::new()),
                    Err(error) => (None, Some(FailureCause::Refused), error),
                };
                let end = AttemptEnd { start, output, failure, error, ..AttemptEnd::default() };
                self.attempt_ended(Box::new(end));
            }
            TokenStatus::Waiting(item) => self.decide(&Input::ResultArrived { item, result }),
            TokenStatus::Late(item) => self.decide(&Input::Late { item, result }),
            TokenStatus::Expired | TokenStatus::Unknown => {}
        }
        found
    }
}
