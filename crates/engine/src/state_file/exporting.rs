//! Makes the file from a job.

use std::collections::BTreeMap;
use std::time::Duration;

use undaunted_policy::{Backoff, CircuitState, Jitter, RetryConfig, RetryProgress, Timestamp};

use super::shape::{
    BackoffState, CircuitBreakerState, CommandRetryState, DurationText, InstantText, RetryAttempt,
    RetryCheckpointState, RetryExecution,
};
use crate::breaker::{AdmissionControl, BreakerState};
use crate::id::{CommandId, ItemId, StepId};
use crate::job::{ActiveItem, Activity, ItemState, Job};
use crate::task::correlation_id;
use crate::view::history::{History, PastAttempt};
use crate::workflow::Command;

/// Exports the current round of every unsettled item and of every dead letter.
pub fn export(
    job: &Job,
    breakers: &AdmissionControl,
    histories: &BTreeMap<ItemId, History>,
) -> RetryCheckpointState {
    let first = job.plan().command(CommandId(0));
    let config = first.map(|command| RetryConfig::from(&command.retry.policy));
    let config = config.and_then(|config| serde_json::to_value(config).ok());
    let mut state = RetryCheckpointState {
        global_retry_config: config.unwrap_or_default(),
        ..RetryCheckpointState::default()
    };
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
            let history = histories.get(&step.item(item));
            let hold = found.held.get(item).map(|hold| hold.since);
            add_item(&mut state, job, (step, identity), active, (hold, history));
        }
    }
    // Imported state whose items have not been read yet.
    for ((command, identity), found) in &job.imported {
        let due = found.due.unwrap_or_default();
        let mut active = ActiveItem::new(*command, due);
        active.use_import(found);
        let step = job.plan().step_of(*command);
        add_item(&mut state, job, (step, identity), &active, (None, None));
    }
    for name in breakers.names() {
        let known = breakers.get(name).map(breaker_of);
        let known = known.map(|breaker| (name.to_string(), breaker));
        state.circuit_breaker_states.extend(known);
    }
    let history = &mut state.retry_execution_history;
    history.sort_by_key(|it| (it.executed_at, it.attempt_number));
    state
}

fn add_item(
    state: &mut RetryCheckpointState,
    job: &Job,
    (step, identity): (StepId, &str),
    active: &ActiveItem,
    (hold, history): (Option<Timestamp>, Option<&History>),
) {
    let attempts = history.map_or(&[][..], |history| &history.attempts);
    let round = attempts.iter().filter(|it| it.round == active.round);
    let mut by_command: BTreeMap<CommandId, Vec<&PastAttempt>> = BTreeMap::new();
    for attempt in round {
        let past = by_command.entry(attempt.of.command);
        past.or_default().push(attempt);
    }
    // The current command may have no attempts in the history, after an import.
    by_command.entry(active.command).or_default();
    for (number, attempts) in by_command {
        let Some(command) = job.plan().command(number) else {
            continue;
        };
        let key =
            if job.plan().is_map(step) { format!("{identity}/{}", command.id) } else { command.id.clone() };
        let mut exported = state_of(&key, command, active, number, &attempts);
        if let Some(since) = hold.filter(|_| active.command == number) {
            exported.is_circuit_broken = true;
            exported.next_retry_at = Some(InstantText(since));
        }
        if exported.attempt_count == Some(0) {
            continue;
        }
        let executions = exported.retry_history.iter().map(|it| RetryExecution {
            command_id: key.clone(),
            attempt_number: it.attempt_number,
            executed_at: it.executed_at,
            success: it.success,
        });
        state.retry_execution_history.extend(executions);
        state.command_retry_states.insert(key, exported);
    }
}

fn breaker_of(state: &BreakerState) -> CircuitBreakerState {
    let (word, success_count, open) = match state.breaker.circuit() {
        CircuitState::Closed { .. } => ("Closed", 0, None),
        CircuitState::Open { since, until } => ("Open", 0, Some((since, until))),
        CircuitState::HalfOpen { successes, .. } => ("HalfOpen", successes, None),
    };
    CircuitBreakerState {
        state: word.to_owned(),
        failure_count: state.failures(),
        success_count,
        opened_at: open.map(|(since, _)| InstantText(since)),
        next_attempt_at: open.map(|(_, until)| InstantText(until)),
    }
}

fn state_of(
    key: &str,
    command: &Command,
    active: &ActiveItem,
    number: CommandId,
    attempts: &[&PastAttempt],
) -> CommandRetryState {
    let is_current = active.command == number;
    let frame = active.frames.iter().rfind(|frame| frame.command == number);
    let last = attempts.last();
    let made = last.map_or(0, |attempt| attempt.of.attempt.0);
    let (made, progress) = match frame {
        _ if is_current => (active.attempts, active.progress()),
        Some(frame) => (frame.attempts, frame.progress),
        None => (made, progress_of(attempts)),
    };
    let due = match active.activity {
        Activity::Waiting(due) if is_current && due > Timestamp::ZERO => Some(InstantText(due)),
        Activity::Waiting(_) | Activity::Running(_) | Activity::Held | Activity::Undecided => None,
    };
    // A dead letter has kept the due time of its last retry, but has no pending one.
    let waits = progress.retries == made && last.is_none_or(|it| it.retry.is_some());
    CommandRetryState {
        command_id: key.to_owned(),
        attempt_count: Some(made),
        max_attempts: command.retry.policy.bound().executions(),
        last_attempt_at: last.map(|attempt| InstantText(attempt.began)),
        next_retry_at: due.filter(|_| waits),
        backoff_state: Some(backoff(command, progress)),
        retry_history: history(attempts),
        current_strategy: command.retry.policy.terms().pace().backoff().name().into(),
        is_circuit_broken: false,
        delay_spent: Some(DurationText(progress.spent)),
    }
}

fn progress_of(attempts: &[&PastAttempt]) -> RetryProgress {
    let retries = attempts.iter().filter_map(|attempt| attempt.retry);
    retries.fold(RetryProgress::default(), |progress, planned| progress.after_wait(planned.delay))
}

fn history(attempts: &[&PastAttempt]) -> Vec<RetryAttempt> {
    let mut before = Duration::ZERO;
    let exported = attempts.iter().map(|attempt| {
        let outcome = attempt.outcome.as_ref();
        let failure = outcome.and_then(|outcome| outcome.failure.as_ref());
        let delay = attempt.retry.map(|planned| planned.delay);
        let applied = std::mem::replace(&mut before, delay.unwrap_or_default());
        RetryAttempt {
            attempt_number: attempt.of.attempt.0,
            executed_at: Some(InstantText(attempt.began)),
            duration: outcome.map(|outcome| DurationText(outcome.took)),
            success: outcome.is_some() && failure.is_none(),
            error: failure.map(|failure| failure.error.clone()),
            backoff_applied: Some(DurationText(applied)),
        }
    });
    exported.collect()
}

fn backoff(command: &Command, progress: RetryProgress) -> BackoffState {
    let pace = command.retry.policy.terms().pace();
    BackoffState {
        strategy: Some(pace.into()),
        current_delay: Some(DurationText(progress.previous.unwrap_or_default())),
        base_delay: Some(DurationText(pace.initial_delay())),
        max_delay: Some(DurationText(pace.max_delay())),
        multiplier: if let Backoff::Exponential { base } = pace.backoff() { Some(*base) } else { None },
        jitter: pace.jitter() != Jitter::None,
    }
}
