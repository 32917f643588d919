//! Reconnecting to the keeper, and recovering attempts.
//!
//! Both work the same way after a crash of the engine and after the death of a keeper: every attempt on
//! record as started has a fate, and each fate has one consequence.

use std::collections::BTreeMap;

use undaunted_engine::effect::{self, Effect};
use undaunted_engine::id::StartId;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::task::KeptOutput;
use undaunted_store::Version;

use super::{AfterCommit, DriveError, JobDriver, action_of};
use crate::executor::StartedAttempt;
use crate::machine::{KeeperAddress, RecordedAttempt, most};
use crate::{AttemptFate, ExpectedEnd, journal};

impl JobDriver<'_> {
    pub(super) fn recover(&mut self) -> Result<(), DriveError> {
        for effect in effect::wanted(&self.job) {
            match effect {
                Effect::Begin { start, .. } | Effect::ReadInput { start: Some(start), .. } => {
                    self.settle_fate(start)?;
                }
                Effect::ReadInput { start: None, .. } | Effect::EndStep { .. } | Effect::EndAll => {
                    self.act(effect)?;
                }
                // Settled when the keeper was reached.
                Effect::Reserve { .. } => {}
            }
        }
        Ok(())
    }

    /// Connects to the keeper or starts one, and handles the fates of the attempts it knows.
    pub(super) fn reconnect(&mut self, last_segment: Option<u32>) -> Result<(), DriveError> {
        let known = self.executors.programs.known_to_keeper.clone();
        let started = known.iter().map(|start| (*start, self.on_record(*start)));
        let started: BTreeMap<StartId, RecordedAttempt> = started.collect();
        let services = self.context.services;
        let reached = services.machine.keeper(KeeperAddress {
            folder: &self.context.folder,
            behind: last_segment,
            started,
            now: self.now(),
            grace: services.grace,
            env: &services.env,
            notifier: self.context.notifier.clone(),
        })?;
        let others = self.executors.programs.reconnect(reached);
        // A reserved start may have begun because another attempt had ended.
        let is_reserved = |start: &StartId| self.job.starts.reserved.contains_key(start);
        let (reserved, running): (Vec<_>, Vec<_>) = known.into_iter().partition(is_reserved);
        for start in running.into_iter().chain(reserved) {
            self.settle_fate(start)?;
        }
        // The last engine may have died before it told the keeper that these ends are on record.
        for start in others {
            let is_settled =
                !self.journal.writes_end_of(start) || mutant::is(Mutant::ResultDiscardedDuringCommit);
            if is_settled {
                self.executors.programs.forget(start);
            }
        }
        self.when_written(AfterCommit::Trust);
        self.submit_pending();
        Ok(())
    }

    /// The last output segment on record, if the spool was removed, for example because the job was archived.
    /// Records refer to outputs by their position in the spool, so a new spool must not reuse these
    /// positions.
    pub(super) fn last_segment(&self) -> Result<Option<u32>, DriveError> {
        let services = self.context.services;
        if self.origin.is_new || services.machine.has_spool(&self.context.folder) {
            return Ok(None);
        }
        let mut last = None;
        let aggregate = &self.journal.claim.aggregate;
        for read in services.store.read(aggregate, Version::EMPTY)? {
            let (version, bytes) = read?;
            let record = journal::decode(self.job.id(), version, &bytes)?;
            last = last.max(record.event.outputs().into_iter().flatten().map(|kept| kept.segment).max());
        }
        Ok(last)
    }

    /// An attempt that was started before this connection to the keeper, as it is on record.
    fn on_record(&self, start: StartId) -> RecordedAttempt {
        let reserved = self.job.starts.reserved.get(&start).map(|it| &it.item);
        let item = self.job.starts.running.get(&start).or(reserved);
        let task = item.and_then(|&item| self.task(item, self.now()).ok()).as_ref().map(ExpectedEnd::of);
        let active = item.and_then(|&item| self.job.active(item));
        let number = active.map(|active| active.command);
        let number = number.or_else(|| self.job.plan().first(item?.step));
        let command = number.and_then(|number| self.job.plan().command(number));
        // The task cannot be built if a value it needs is gone by now.
        let (program, working_dir) = match task {
            Some(expected) => (expected.program, expected.working_dir),
            None => (self.job.workflow().shell.clone(), self.job.submitted().working_dir.clone()),
        };
        let is_wanted = number.is_none_or(|number| self.job.plan().wants_output(number));
        let keeps = match item {
            Some(_) => KeptOutput::Value,
            None => KeptOutput::Items,
        };
        RecordedAttempt {
            expected: ExpectedEnd {
                capture: is_wanted.then(|| most(keeps)),
                output_limit: command.and_then(|command| command.output_limit),
                program,
                working_dir,
            },
            timeout: command.and_then(|command| command.timeout),
            token: self.token_of(start),
        }
    }

    fn settle_fate(&mut self, start: StartId) -> Result<(), DriveError> {
        let action = action_of(&self.job, start);
        let fate = self.executors.of(action).fate_after_crash(&StartedAttempt {
            start,
            action,
            is_accepted: self.job.starts.accepted.contains_key(&start),
        });
        match fate {
            _ if mutant::is(Mutant::ReservationBegunTwice) && self.not_begun(start) => Ok(()),
            AttemptFate::Begin if self.not_begun(start) => Ok(()),
            AttemptFate::Begin => self.begin_again(start),
            AttemptFate::Wait(began) => {
                self.begun(start, began);
                Ok(())
            }
            AttemptFate::Ended(end) => {
                self.attempt_ended(end);
                Ok(())
            }
        }
    }

    /// Begins an attempt that is on record as started, under the same number.
    fn begin_again(&mut self, start: StartId) -> Result<(), DriveError> {
        if let Some(&item) = self.job.starts.running.get(&start) {
            return self.begin_attempt(start, item);
        }
        if let Some(step) = self.input_of(start) {
            self.executors.inputs.forget(step);
            let start = Some(start);
            self.act(Effect::ReadInput { step, start })?;
        }
        Ok(())
    }
}
