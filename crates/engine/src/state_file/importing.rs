//! Turns the file into an event for a new job, or refuses state that does not fit.

use std::time::Duration;

use undaunted_policy::{Pace, Timestamp};

use super::shape::{BackoffStrategy, CommandRetryState, InstantText, RetryAttempt, RetryCheckpointState};
use crate::event::{Event, ImportedCommand, JobEvent, StoredText};
use crate::id::CommandId;
use crate::job::Job;
use crate::plan::Plan;
use crate::workflow::Command;

#[derive(Clone, Debug, PartialEq)]
pub struct ImportedState {
    pub event: Event,
    /// Commands that have made attempts.
    pub commands: usize,
    /// Commands with a pending retry.
    pub pending: usize,
    pub breakers: Vec<ImportedBreaker>,
    /// Differences the user should know about.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedBreaker {
    pub name: String,
    pub since: Timestamp,
    pub until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    #[error("`{key}` names the command `{command}`, but the workflow has no such command")]
    UnknownCommand { key: String, command: String },
    #[error("`{key}` is a command of the map; its state must name an item: `ITEM/{key}`")]
    NoItem { key: String },
    #[error("`{key}` names an item, but `{command}` is not a command of the map")]
    NoMap { key: String, command: String },
    #[error("`{key}` has made {made} attempts, but the workflow allows only {allowed}")]
    TooManyAttempts { key: String, made: u32, allowed: u64 },
    #[error("`{key}` has a pending retry, but all of its {made} attempts are used")]
    NoAttemptLeft { key: String, made: u32 },
    #[error("`{key}` has an attempt count of {made}, but lists {listed} attempts")]
    Contradiction { key: String, made: u32, listed: usize },
    #[error("`{key}` has spent {spent:?} on delays, but its retry budget is {budget:?}")]
    OverBudget { key: String, spent: Duration, budget: Duration },
    #[error("`{key}` has the strategy `Custom` with the formula `{formula}`; formulas are not supported")]
    Formula { key: String, formula: String },
    #[error("`{key}` is held by a circuit breaker, but the workflow gives it none")]
    Breaker { key: String },
    #[error("breaker `{key}` has the state `{state}`; expected Closed, Open or HalfOpen")]
    BreakerState { key: String, state: String },
}

/// The job must have no records but its submission. Fails for the first command that does not fit.
pub fn import(state: &RetryCheckpointState, job: &Job) -> Result<ImportedState, ImportError> {
    let mut notes = Vec::new();
    let mut commands = Vec::new();
    let breakers = breakers(state, job)?;
    for (key, state) in &state.command_retry_states {
        let target = CommandTarget::of(job.plan(), key)?;
        refuse_unsupported(key, state, &target)?;
        if state.retry_history.last().is_some_and(|last| last.success) {
            notes
                .push(format!("`{key}` had succeeded; it runs again, because its output is not in the file"));
            continue;
        }
        let allowed = target.command.retry.policy.bound().executions();
        if let (Some(theirs), Some(ours)) = (state.max_attempts, allowed)
            && theirs != ours
        {
            notes.push(format!(
                "`{key}` was allowed {theirs} attempts; the {ours} attempts of the workflow apply"
            ));
        }
        commands.extend(command(job, key, &target, state)?);
    }
    Ok(ImportedState {
        commands: commands.len(),
        pending: commands.iter().filter(|it| it.due.is_some()).count(),
        event: Event::Job(JobEvent::StateImported { commands }),
        breakers,
        notes,
    })
}

/// The open breakers. A half-open breaker may be probed at once.
fn breakers(state: &RetryCheckpointState, job: &Job) -> Result<Vec<ImportedBreaker>, ImportError> {
    let settings = job.plan().breakers();
    let mut open = Vec::new();
    for (key, state) in &state.circuit_breaker_states {
        match state.state.as_str() {
            "" | "Closed" => continue,
            "Open" | "HalfOpen" => {}
            state => {
                return Err(ImportError::BreakerState { key: key.clone(), state: state.to_owned() });
            }
        }
        // Other systems name a breaker after its command.
        let by_command = || {
            let numbers = job.plan().numbered();
            let mut numbers = numbers.filter(|(_, command)| command.id == *key);
            numbers.find_map(|(number, _)| job.breaker_of(number))
        };
        let name = if settings.contains_key(key) { Some(key.as_str()) } else { by_command() };
        let name = name.ok_or_else(|| ImportError::Breaker { key: key.clone() })?;
        let since = state.opened_at.map_or(job.times.submitted_at, |at| at.0);
        let timeout = settings.get(name).copied().unwrap_or_default();
        let timeout = timeout.recovery_timeout;
        let until = match state.next_attempt_at {
            Some(until) => until.0,
            None if state.state == "HalfOpen" => job.times.submitted_at,
            None => since.after(timeout),
        };
        open.push(ImportedBreaker { name: name.to_owned(), since, until });
    }
    Ok(open)
}

struct CommandTarget<'p> {
    item: String,
    number: CommandId,
    command: &'p Command,
}

impl<'p> CommandTarget<'p> {
    fn of(plan: &'p Plan, key: &str) -> Result<Self, ImportError> {
        let by_id = |id: &str| {
            let numbers = plan.numbered();
            numbers.into_iter().find(|(_, command)| command.id == id)
        };
        if let Some((number, command)) = by_id(key) {
            let step = plan.step_of(number);
            if plan.is_map(step) {
                return Err(ImportError::NoItem { key: key.to_owned() });
            }
            // The only item of a step is named after its first command.
            let first = plan.first(step).and_then(|first| plan.command(first));
            let item = first.map_or_else(String::new, |first| first.id.clone());
            return Ok(Self { item, number, command });
        }
        let (item, id) = key.rsplit_once('/').unwrap_or(("", key));
        let (number, command) = by_id(id)
            .ok_or_else(|| ImportError::UnknownCommand { key: key.to_owned(), command: id.to_owned() })?;
        if !plan.is_map(plan.step_of(number)) {
            return Err(ImportError::NoMap { key: key.to_owned(), command: id.to_owned() });
        }
        Ok(Self { item: item.to_owned(), number, command })
    }
}

fn refuse_unsupported(
    key: &str,
    state: &CommandRetryState,
    target: &CommandTarget<'_>,
) -> Result<(), ImportError> {
    let backoff = state.backoff_state.as_ref();
    let strategy = backoff.and_then(|it| it.strategy.as_ref());
    if let Some(BackoffStrategy::Custom { formula: Some(formula), .. }) = strategy {
        return Err(ImportError::Formula { key: key.to_owned(), formula: formula.clone() });
    }
    if state.is_circuit_broken && target.command.breaker.is_none() {
        return Err(ImportError::Breaker { key: key.to_owned() });
    }
    Ok(())
}

/// `None` for a command that was never attempted.
fn command(
    job: &Job,
    key: &str,
    target: &CommandTarget<'_>,
    state: &CommandRetryState,
) -> Result<Option<ImportedCommand>, ImportError> {
    let listed = state.retry_history.len();
    let made = state.attempt_count;
    let made = made.unwrap_or_else(|| u32::try_from(listed).unwrap_or(u32::MAX));
    if usize::try_from(made).is_ok_and(|made| listed > made) {
        let key = key.to_owned();
        return Err(ImportError::Contradiction { key, made, listed });
    }
    let Some(earlier) = made.checked_sub(1) else {
        return Ok(None);
    };
    let policy = &target.command.retry.policy;
    let allowed = policy.bound().executions();
    let handler = target.command.on_failure.as_deref();
    let more = handler.map_or(0, |handler| u64::from(handler.max_attempts));
    let most = allowed.map(|allowed| allowed.saturating_add(more));
    if let Some(allowed) = most.filter(|most| u64::from(made) > *most) {
        let key = key.to_owned();
        return Err(ImportError::TooManyAttempts { key, made, allowed });
    }
    let used_up = allowed.is_some_and(|allowed| u64::from(made) >= allowed);
    if used_up && state.next_retry_at.is_some() {
        let key = key.to_owned();
        return Err(ImportError::NoAttemptLeft { key, made });
    }
    let retries = if used_up { earlier } else { made };
    let limits = policy.terms().limits();
    let (spent, previous) = delays(job, target, state, earlier, used_up, policy.terms().pace());
    if let Some(budget) = limits.retry_budget().filter(|budget| spent > *budget) {
        let key = key.to_owned();
        return Err(ImportError::OverBudget { key, spent, budget });
    }
    let due = state.next_retry_at.map(|InstantText(due)| due);
    let last = state.retry_history.last();
    let error = last.and_then(|last| last.error.clone());
    Ok(Some(ImportedCommand {
        item: target.item.clone(),
        command: target.number,
        attempts: made,
        retries,
        spent,
        previous: Some(previous),
        due,
        expires: due.and_then(|due| limits.budget_expires_at(spent, due)),
        error: error.map(StoredText::Itself),
    }))
}

/// The sum of all delays, and the last of them. Delays that the file lacks are computed from the pace of the
/// workflow.
fn delays(
    job: &Job,
    of: &CommandTarget<'_>,
    state: &CommandRetryState,
    earlier: u32,
    used_up: bool,
    pace: &Pace,
) -> (Duration, Duration) {
    let draws = job.seed().draws(0, of.command.index, 1);
    let applied = |attempt: u32| {
        let listed = state.retry_history.iter();
        let mut listed = listed.filter(|it: &&RetryAttempt| it.attempt_number == attempt);
        listed.find_map(|it| it.backoff_applied).map(|span| span.0)
    };
    let (mut spent, mut previous) = (Duration::ZERO, None);
    // A long history gives its delays; without one, `FILLED` bounds how many are computed.
    let listed = u32::try_from(state.retry_history.len()).unwrap_or(u32::MAX);
    let mut retry = std::num::NonZeroU32::MIN;
    for _ in 0..earlier.min(listed.max(FILLED)) {
        let state = applied(retry.get().saturating_add(1));
        let delay = state.unwrap_or_else(|| pace.delay(retry, previous, draws).drawn);
        spent = spent.saturating_add(delay);
        previous = Some(delay);
        retry = retry.saturating_add(1);
    }
    if state.next_retry_at.is_some() && !used_up {
        let current = state.backoff_state.as_ref().and_then(|it| it.current_delay);
        let current = current.map_or_else(|| pace.delay(retry, previous, draws).drawn, |it| it.0);
        spent = spent.saturating_add(current);
        previous = Some(current);
    }
    let spent = state.delay_spent.map_or(spent, |state| state.0);
    let previous = previous.unwrap_or_default();
    (spent.min(LONGEST), previous.min(LONGEST))
}

/// The longest delay, some 584 years: a file may hold any duration.
const LONGEST: Duration = Duration::from_nanos(u64::MAX - 1);

/// The most delays that are computed for a file with the number of attempts only.
const FILLED: u32 = 100_000;
