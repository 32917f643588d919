//! What an export needs of the journal besides the histories of open items: the imported state with its histories, and
//! when each attempt of the current round was made.
//!
//! An item may have succeeded long ago, and there may be a million of them, so an attempt takes a few words here.

use std::collections::BTreeMap;

use undaunted_policy::Timestamp;

use super::exporting::key_of;
use super::shape::{InstantText, RetryExecution};
use crate::event::{AttemptId, Event, ImportedCommand, ImportedExecution, ItemEvent, JobEvent, Record};
use crate::id::{CommandId, ItemId};
use crate::job::Job;
use crate::workflow::StepPhase;

#[derive(Clone, Debug, Default)]
pub struct ExportedPast {
    /// By the name of the item.
    imported: BTreeMap<String, BTreeMap<CommandId, ImportedCommand>>,
    /// Imported executions that no imported history lists.
    executed: Vec<ImportedExecution>,
    own: BTreeMap<ItemId, Vec<OwnExecution>>,
}

#[derive(Clone, Copy, Debug)]
struct OwnExecution {
    of: AttemptId,
    at: Timestamp,
    /// `None` while it runs.
    succeeded: Option<bool>,
}

impl ExportedPast {
    /// Folds a record. Only the plan of the job is read.
    pub fn take(&mut self, job: &Job, record: &Record) {
        match &record.event {
            Event::Job(JobEvent::StateImported { commands, executions, .. }) => {
                for command in commands {
                    let of_item = self.imported.entry(command.item.clone()).or_default();
                    of_item.insert(command.command, command.clone());
                }
                self.executed.extend(executions.iter().flatten().cloned());
            }
            Event::Job(JobEvent::Redriven { reduce: true }) => self.own.retain(|item, _| {
                let step = job.plan().step(item.step);
                step.is_none_or(|step| step.phase != StepPhase::Reduce)
            }),
            Event::Item(event) => self.take_item(event, record.at),
            Event::Job(_) | Event::Step(_) | Event::Breaker(_) => {}
        }
    }

    fn take_item(&mut self, event: &ItemEvent, at: Timestamp) {
        match event {
            ItemEvent::AttemptStarted(started) => {
                let own = self.own.entry(started.of.item()).or_default();
                own.push(OwnExecution { of: started.of, at, succeeded: None });
            }
            ItemEvent::AttemptSucceeded(done) => self.ended(done.of.item(), true),
            ItemEvent::AttemptFailed(failed) => self.ended(failed.of.item(), false),
            // Commands that have succeeded do not run again in the new round.
            ItemEvent::Redriven { .. } => {
                if let Some(own) = self.own.get_mut(&event.item()) {
                    own.retain(|execution| execution.succeeded == Some(true));
                }
            }
            ItemEvent::RetryScheduled(_)
            | ItemEvent::CommandStopped(_)
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::CommandRecovered { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::DeadLettered { .. }
            | ItemEvent::Skipped { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::Held(_)
            | ItemEvent::Released(_)
            | ItemEvent::AttemptAccepted { .. }
            // The attempt it is about has failed all the same.
            | ItemEvent::ResultArrived(_)
            | ItemEvent::LateResult(_)
            | ItemEvent::StartReserved(_)
            | ItemEvent::ReservationWithdrawn(_) => {}
        }
    }

    fn ended(&mut self, item: ItemId, succeeded: bool) {
        if let Some(last) = self.own.get_mut(&item).and_then(|own| own.last_mut()) {
            last.succeeded = Some(succeeded);
        }
    }

    /// The items that an export names.
    pub fn items(&self) -> impl Iterator<Item = ItemId> {
        self.own.keys().copied()
    }

    pub(super) fn imported(&self, item: &str) -> Option<&BTreeMap<CommandId, ImportedCommand>> {
        self.imported.get(item)
    }

    /// All executions that have ended.
    pub(super) fn executions(&self, job: &Job) -> Vec<RetryExecution> {
        let key = |number: CommandId, identity: &str| {
            let command = job.plan().command(number)?;
            Some(key_of(job.plan(), number, identity, command))
        };
        let mut executions: Vec<RetryExecution> = self.executed.iter().map(RetryExecution::from).collect();
        let listed: std::collections::BTreeSet<(String, u32)> =
            executions.iter().map(|it| (it.command_id.clone(), it.attempt_number)).collect();
        for (identity, commands) in &self.imported {
            for (number, command) in commands {
                let Some(command_id) = key(*number, identity) else { continue };
                let attempts = command.history.iter().flatten();
                let own = attempts.map(|attempt| RetryExecution {
                    command_id: command_id.clone(),
                    attempt_number: attempt.number,
                    executed_at: attempt.at.map(InstantText),
                    success: attempt.succeeded,
                });
                let is_new =
                    |it: &RetryExecution| !listed.contains(&(it.command_id.clone(), it.attempt_number));
                executions.extend(own.filter(is_new));
            }
        }
        for (item, own) in &self.own {
            executions.extend(own.iter().filter_map(|execution| {
                Some(RetryExecution {
                    command_id: key(execution.of.command, job.identity(*item))?,
                    attempt_number: execution.of.attempt.0,
                    executed_at: Some(InstantText(execution.at)),
                    success: execution.succeeded?,
                })
            }));
        }
        executions
    }
}

impl From<&ImportedExecution> for RetryExecution {
    fn from(imported: &ImportedExecution) -> Self {
        Self {
            command_id: imported.command.clone(),
            attempt_number: imported.attempt.0,
            executed_at: imported.at.map(InstantText),
            success: imported.succeeded,
        }
    }
}
