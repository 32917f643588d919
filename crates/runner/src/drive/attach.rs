//! Reaching the keeper, and finding out what became of attempts.
//!
//! The same after a crash of the engine and after the death of a keeper: every attempt that was
//! recorded as started has a fate, and each fate has one consequence.

use std::collections::BTreeMap;

use undaunted_engine::effect::{self, Effect};
use undaunted_engine::task::Keeps;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::Version;

use super::act::action_of;
use super::error::DriveError;
use super::message::When;
use super::running::Drive;
use crate::executor::{AttemptFate, Started};
use crate::journal;
use crate::machine::{Expected, OnRecord, Reach, most};

impl Drive<'_> {
    /// Resumes what was under way when the last engine died.
    pub(super) fn recover(&mut self) -> Result<(), DriveError> {
        for effect in effect::wanted(&self.job) {
            match effect {
                Effect::Begin { start, .. }
                | Effect::ReadInput {
                    start: Some(start), ..
                } => self.draw_fate(start)?,
                Effect::ReadInput { start: None, .. } | Effect::EndStep { .. } | Effect::EndAll => {
                    self.act(effect)?;
                }
            }
        }
        Ok(())
    }

    /// Connects to the keeper or starts one, and draws the consequences of what it knows.
    pub(super) fn attach(&mut self) -> Result<(), DriveError> {
        let told = self.executors.programs.told().clone();
        let started = told.iter().map(|start| (*start, self.on_record(*start)));
        let started: BTreeMap<u64, OnRecord> = started.collect();
        let world = self.context.world;
        let reached = world.machine.keeper(Reach {
            folder: &self.context.folder,
            behind: self.last_place()?,
            started,
            secrets: self.context.secrets.clone(),
            now: self.now(),
            grace: world.grace,
            notifier: self.context.notifier.clone(),
        })?;
        let others = self.executors.programs.attach(reached);
        for start in told {
            self.draw_fate(start)?;
        }
        // The last engine may have died before it said that the end of these is on record.
        for start in others {
            let is_settled =
                !self.journal.writes_end_of(start) || mutant::is(Mutant::ForgetsWhileWriting);
            if is_settled {
                self.executors.programs.forget(start);
            }
        }
        self.when_written(When::Trust);
        self.hand_over();
        Ok(())
    }

    /// What is on record of outputs is places in the spool. If that was removed, as by archiving the
    /// job, the next one must not give the same places to others: the last one that is on record.
    fn last_place(&self) -> Result<Option<u32>, DriveError> {
        let world = self.context.world;
        if self.origin.is_new || world.machine.has_spool(&self.context.folder) {
            return Ok(None);
        }
        let mut last = None;
        let aggregate = &self.journal.claim.aggregate;
        for read in world.store.read(aggregate, Version::EMPTY)? {
            let (version, bytes) = read?;
            let record = journal::decode(self.job.id(), version, &bytes)?;
            let places = record.event.outputs().into_iter().flatten();
            last = last.max(places.map(|kept| kept.segment).max());
        }
        Ok(last)
    }

    /// What is known of an attempt of a program that was started before its keeper was reached.
    fn on_record(&self, start: u64) -> OnRecord {
        let place = self.job.starts.running.get(&start);
        let task = place.and_then(|&item| self.task(item).ok());
        let task = task.as_ref().map(Expected::of);
        let active = place.and_then(|&item| self.job.active(item));
        let number = active.map(|active| active.command);
        let command = number.and_then(|number| self.job.plan().command(number));
        // A value may be missing by now that was there when it began.
        let (program, working_dir) = match task {
            Some(expected) => (expected.program, expected.working_dir),
            None => (
                self.job.workflow().shell.clone(),
                self.job.submitted().working_dir.clone(),
            ),
        };
        let is_wanted = number.is_none_or(|number| self.job.plan().wants_output(number));
        let keeps = match place {
            Some(_) => Keeps::Value,
            None => Keeps::Items,
        };
        OnRecord {
            expected: Expected {
                capture: is_wanted.then(|| most(keeps)),
                output_limit: command.and_then(|command| command.output_limit),
                program,
                working_dir,
            },
            timeout: command.and_then(|command| command.timeout),
            token: self.token_of(start),
        }
    }

    /// Asks what became of an attempt, and draws the consequence.
    fn draw_fate(&mut self, start: u64) -> Result<(), DriveError> {
        let action = action_of(&self.job, start);
        let fate = self.executors.of(action).fate_after_crash(&Started {
            start,
            action,
            is_accepted: self.job.starts.accepted.contains_key(&start),
        });
        match fate {
            AttemptFate::Begin => self.begin_again(start),
            AttemptFate::Wait => Ok(()),
            AttemptFate::Ended(end) => {
                self.attempt_ended(*end);
                Ok(())
            }
        }
    }

    /// Begins what is on record as started, under the same number.
    fn begin_again(&mut self, start: u64) -> Result<(), DriveError> {
        if let Some(&item) = self.job.starts.running.get(&start) {
            return self.begin_attempt(start, item);
        }
        if let Some(step) = self.input_of(start) {
            if !mutant::is(Mutant::InputNotBegunAgain) {
                self.executors.inputs.forget(step);
            }
            let start = Some(start);
            self.act(Effect::ReadInput { step, start })?;
        }
        Ok(())
    }
}
