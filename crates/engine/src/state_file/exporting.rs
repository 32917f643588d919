//! Makes the file from a job.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::{Backoff, Jitter, RetryConfig, RetryProgress, Timestamp};

use super::past::ExportedPast;
use super::shape::{
    BackoffState, CircuitBreakerState, CommandRetryState, DurationText, InstantText, RetryAttempt,
    RetryCheckpointState, RetryExecution, UNLIMITED,
};
use crate::breaker::AdmissionControl;
use crate::event::{ImportedAttempt, ImportedCommand, StoredText};
use crate::id::{CommandId, ItemId, StepId};
use crate::job::{ActiveItem, Activity, ItemState, Job};
use crate::plan::Plan;
use crate::task::correlation_id;
use crate::view::history::{History, PastAttempt};
use crate::workflow::Command;

/// Exports the current round of every unsettled item and of every dead letter, and the executions of all items.
pub fn export(
    job: &Job,
    breakers: &AdmissionControl,
    histories: &BTreeMap<ItemId, History>,
    past: &ExportedPast,
) -> RetryCheckpointState {
    let mut state =
        RetryCheckpointState { global_retry_config: global_config(job), ..RetryCheckpointState::default() };
    for (step, found) in StepId::all().zip(&job.steps) {
        for (item, status) in found.items.iter() {
            let active = match status {
                ItemState::Active(active) => Some(active),
                ItemState::Settled(_) => job.dead.get(&step.item(item)).map(|dead| &**dead),
                ItemState::Pending => None,
            };
            let Some(active) = active else { continue };
            let identity = found.items.identity(item);
            let id = correlation_id(job, step.item(item));
            state.retry_correlation_map.insert(identity.to_owned(), id);
            let exported = ExportedItem {
                job,
                identity,
                active,
                held: found.held.get(item).map(|hold| hold.since),
                own: histories.get(&step.item(item)),
                imported: past.imported(identity),
            };
            exported.add_to(&mut state, step);
        }
    }
    // Imported state that its items have not reached.
    for ((number, identity), found) in &job.imported {
        let Some(command) = job.plan().command(*number) else { continue };
        let known = past.imported(identity).and_then(|commands| commands.get(number));
        if let Some(known) = known.filter(|known| known.history.is_some()) {
            let key = key_of(job.plan(), *number, identity, command);
            let exported = imported_state(&key, command, found, known);
            state.command_retry_states.insert(key, exported);
        }
    }
    for (item, id) in &job.correlations {
        state.retry_correlation_map.entry(item.clone()).or_insert_with(|| id.clone());
    }
    for name in breakers.names() {
        let known = breakers.get(name).map(CircuitBreakerState::from);
        let known = known.map(|breaker| (name.to_string(), breaker));
        state.circuit_breaker_states.extend(known);
    }
    state.retry_execution_history = past.executions(job);
    state.retry_execution_history.sort_by(|a, b| order(a).cmp(&order(b)));
    state
}

/// The block at the level of the workflow, with every default written out.
fn global_config(job: &Job) -> Value {
    let config = job.workflow().retry.as_ref();
    let policy = config.and_then(|config| config.clone().build().ok());
    let config = policy.and_then(|policy| serde_json::to_value(RetryConfig::from(&policy)).ok());
    config.unwrap_or_default()
}

/// Total, so that what is imported is exported in the same order.
fn order(of: &RetryExecution) -> (Option<InstantText>, &str, u32, bool) {
    (of.executed_at, &of.command_id, of.attempt_number, of.success)
}

pub(super) fn key_of(plan: &Plan, number: CommandId, identity: &str, command: &Command) -> String {
    if plan.is_map(plan.step_of(number)) { format!("{identity}/{}", command.id) } else { command.id.clone() }
}

/// An unsettled item or a dead letter.
struct ExportedItem<'j> {
    job: &'j Job,
    identity: &'j str,
    active: &'j ActiveItem,
    held: Option<Timestamp>,
    own: Option<&'j History>,
    imported: Option<&'j BTreeMap<CommandId, ImportedCommand>>,
}

impl ExportedItem<'_> {
    fn add_to(&self, state: &mut RetryCheckpointState, step: StepId) {
        let attempts = self.own.map_or(&[][..], |history| &history.attempts);
        let round = attempts.iter().filter(|it| it.round == self.active.round);
        let mut by_command: BTreeMap<CommandId, Vec<&PastAttempt>> = BTreeMap::new();
        for attempt in round {
            let past = by_command.entry(attempt.of.command);
            past.or_default().push(attempt);
        }
        // Commands may have made all their attempts before an import.
        by_command.entry(self.active.command).or_default();
        let passed = self.imported.into_iter().flatten().filter(|(number, known)| {
            let is_here = self.job.plan().step_of(**number) == step;
            let is_to_come = self.job.imported.contains_key(&(**number, self.identity.to_owned()));
            is_here && !is_to_come && known.history.is_some() && self.active.round == 1
        });
        for (number, _) in passed {
            by_command.entry(*number).or_default();
        }
        for (number, attempts) in by_command {
            let Some(command) = self.job.plan().command(number) else { continue };
            let key = key_of(self.job.plan(), number, self.identity, command);
            let exported = self.state_of(&key, command, number, &attempts);
            if exported.attempt_count != Some(0) {
                state.command_retry_states.insert(key, exported);
            }
        }
    }

    fn state_of(
        &self,
        key: &str,
        command: &Command,
        number: CommandId,
        attempts: &[&PastAttempt],
    ) -> CommandRetryState {
        let active = self.active;
        // A redrive begins a round of its own.
        let imported = self.imported.filter(|_| active.round == 1);
        let imported = imported.and_then(|commands| commands.get(&number));
        let is_current = active.command == number;
        let frame = active.frames.iter().rfind(|frame| frame.command == number);
        let last = attempts.last();
        let (made, progress) = match frame {
            _ if is_current => (active.attempts, active.progress()),
            Some(frame) => (frame.attempts, frame.progress),
            None => {
                let before = imported.map_or(0, |imported| imported.attempts);
                let made = last.map_or(before, |attempt| attempt.of.attempt.0);
                (made, progress_of(imported, attempts))
            }
        };
        let due = match active.activity {
            Activity::Waiting(due) if is_current && due > Timestamp::ZERO => Some(due),
            Activity::Waiting(_) | Activity::Running(_) | Activity::Held | Activity::Undecided => None,
        };
        // A dead letter has kept the due time of its last retry, but has no pending one.
        let waits = progress.retries == made && last.is_none_or(|it| it.retry.is_some());
        let held = self.held.filter(|_| is_current);
        let began = last.map(|attempt| attempt.began);
        CommandRetryState {
            attempt_count: Some(made),
            last_attempt_at: began.or_else(|| imported.and_then(last_attempt_at)).map(InstantText),
            next_retry_at: held.or_else(|| due.filter(|_| waits)).map(InstantText),
            retry_history: history(imported, attempts),
            is_circuit_broken: held.is_some(),
            ..state_of_policy(key, command, progress)
        }
    }
}

/// The state of a command that its item has not reached since the import.
fn imported_state(
    key: &str,
    command: &Command,
    found: &ImportedCommand,
    known: &ImportedCommand,
) -> CommandRetryState {
    let progress = RetryProgress { retries: found.retries, spent: found.spent, previous: found.previous };
    CommandRetryState {
        attempt_count: Some(found.attempts),
        last_attempt_at: last_attempt_at(known).map(InstantText),
        next_retry_at: found.due.map(InstantText),
        retry_history: history(Some(known), &[]),
        is_circuit_broken: known.broken == Some(true),
        ..state_of_policy(key, command, progress)
    }
}

fn last_attempt_at(imported: &ImportedCommand) -> Option<Timestamp> {
    let listed = imported.history.iter().flatten().filter_map(|attempt| attempt.at);
    imported.last_attempt_at.or_else(|| listed.max())
}

/// What follows from the policy of a command.
fn state_of_policy(key: &str, command: &Command, progress: RetryProgress) -> CommandRetryState {
    let policy = &command.retry.policy;
    let most = policy.bound().executions().unwrap_or(UNLIMITED);
    CommandRetryState {
        command_id: key.to_owned(),
        max_attempts: Some(most.min(UNLIMITED)),
        backoff_state: Some(backoff(command, progress)),
        current_strategy: policy.terms().pace().backoff().name().into(),
        delay_spent: Some(DurationText(progress.spent)),
        ..CommandRetryState::default()
    }
}

fn progress_of(imported: Option<&ImportedCommand>, attempts: &[&PastAttempt]) -> RetryProgress {
    let before = imported.map_or_else(RetryProgress::default, |imported| RetryProgress {
        retries: imported.retries,
        spent: imported.spent,
        previous: imported.previous,
    });
    let retries = attempts.iter().filter_map(|attempt| attempt.retry);
    retries.fold(before, |progress, planned| progress.after_wait(planned.delay))
}

/// The attempts that have ended, those before the import first.
fn history(imported: Option<&ImportedCommand>, attempts: &[&PastAttempt]) -> Vec<RetryAttempt> {
    let listed = imported.into_iter().flat_map(|imported| imported.history.iter().flatten());
    let mut history: Vec<RetryAttempt> = listed.map(RetryAttempt::from).collect();
    let mut before = imported.and_then(|imported| imported.previous).unwrap_or_default();
    for attempt in attempts {
        let delay = attempt.retry.map(|planned| planned.delay);
        let applied = std::mem::replace(&mut before, delay.unwrap_or_default());
        let Some(outcome) = &attempt.outcome else { continue };
        let failure = outcome.failure.as_ref();
        history.push(RetryAttempt {
            attempt_number: attempt.of.attempt.0,
            executed_at: Some(InstantText(attempt.began)),
            duration: Some(DurationText(outcome.took)),
            success: failure.is_none(),
            error: failure.map(|failure| failure.error.clone()),
            backoff_applied: Some(DurationText(applied)),
        });
    }
    history
}

impl From<&ImportedAttempt> for RetryAttempt {
    fn from(imported: &ImportedAttempt) -> Self {
        let error = imported.error.as_ref().and_then(|error| match error {
            StoredText::Itself(text) => Some(text.clone()),
            // An import keeps no texts.
            StoredText::Kept(_) => None,
        });
        Self {
            attempt_number: imported.number,
            executed_at: imported.at.map(InstantText),
            duration: imported.took.map(DurationText),
            success: imported.succeeded,
            error,
            backoff_applied: imported.delay.map(DurationText),
        }
    }
}

fn backoff(command: &Command, progress: RetryProgress) -> BackoffState {
    let pace = command.retry.policy.terms().pace();
    let multiplier = match pace.backoff() {
        Backoff::Exponential { base } => *base,
        // The delay grows by other means, if at all.
        Backoff::Fixed | Backoff::Linear { .. } | Backoff::Fibonacci | Backoff::Custom { .. } => 1.0,
    };
    BackoffState {
        strategy: Some(pace.into()),
        current_delay: Some(DurationText(progress.previous.unwrap_or(Duration::ZERO))),
        base_delay: Some(DurationText(pace.initial_delay())),
        max_delay: Some(DurationText(pace.max_delay())),
        multiplier: Some(multiplier),
        jitter: pace.jitter() != Jitter::None,
    }
}
