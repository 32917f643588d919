//! Turns the file into an event for a new job, or refuses state that does not fit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use undaunted_policy::Pace;

use super::breakers::{ImportedBreaker, breakers};
use super::shape::{
    BackoffStrategy, CommandRetryState, InstantText, RetryAttempt, RetryCheckpointState, UNLIMITED,
};
use super::successes::Successes;
use crate::event::{
    Event, ImportedAttempt, ImportedCommand, ImportedCorrelation, ImportedExecution, JobEvent, StoredText,
};
use crate::id::{AttemptNumber, CommandId};
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
    /// Commands that do not run again.
    pub succeeded: usize,
    pub breakers: Vec<ImportedBreaker>,
    /// Differences the user should know about.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    #[error("`{key}` names the command `{command}`, but the workflow has no such command")]
    UnknownCommand { key: String, command: String },
    #[error("`{key}` names the item `{item}`, but the input of the map has no such item")]
    UnknownItem { key: String, item: String },
    #[error("`{key}` is a command of the map; its state must name an item: `ITEM/{key}`")]
    NoItem { key: String },
    #[error("`{key}` names an item, but `{command}` is not a command of the map")]
    NoMap { key: String, command: String },
    #[error("`{key}` has made {}, but the workflow allows only {allowed}", attempts(*made))]
    TooManyAttempts { key: String, made: u32, allowed: u64 },
    #[error("`{key}` has a pending retry, but all of its {} are used", attempts(*made))]
    NoAttemptLeft { key: String, made: u32 },
    #[error("`{key}` has an attempt count of {made}, but lists {}", attempts(*listed))]
    Contradiction { key: String, made: u32, listed: usize },
    #[error("`{key}` has spent {spent:?} on delays, but its retry budget is {budget:?}")]
    OverBudget { key: String, spent: Duration, budget: Duration },
    #[error("`{key}` has the strategy `Custom` with the formula `{formula}`; formulas are not supported")]
    Formula { key: String, formula: String },
    #[error("`{key}` is held by a circuit breaker, but the workflow gives it none")]
    Breaker { key: String },
    #[error("breaker `{key}` has the state `{state}`; expected Closed, Open or HalfOpen")]
    BreakerState { key: String, state: String },
    #[error(
        "`{key}` has the correlation id {id:?}; expected 1 to {MOST_CORRELATION} printable ASCII characters"
    )]
    Correlation { key: String, id: String },
}

/// A correlation id becomes an environment variable and a header.
const MOST_CORRELATION: usize = 256;

fn attempts(many: impl TryInto<usize>) -> String {
    let many = many.try_into().unwrap_or(usize::MAX);
    format!("{many} {}", if many == 1 { "attempt" } else { "attempts" })
}

/// The job must have no records but its submission. `items` are the items of its map, if they are known. Fails
/// for the first command that does not fit.
pub fn import(
    state: &RetryCheckpointState,
    job: &Job,
    items: Option<&BTreeSet<String>>,
) -> Result<ImportedState, ImportError> {
    let targets = Targets { plan: job.plan(), items };
    let mut successes = Successes::of(state, &targets)?;
    let mut notes = Vec::new();
    let breakers = breakers(state, job, &mut notes)?;
    let mut commands = Vec::new();
    for (key, state) in &state.command_retry_states {
        let target = targets.of(key)?;
        refuse_unsupported(key, state, &target)?;
        let allowed = target.command.retry.policy.bound().executions();
        if let (Some(theirs), Some(ours)) = (state.max_attempts, allowed)
            && theirs != ours
            && theirs < UNLIMITED
        {
            notes.push(format!("`{key}` was allowed {}; the {ours} of the workflow apply", attempts(theirs)));
        }
        if state.attempt_count.unwrap_or_default() == 0 && state.retry_history.is_empty() {
            continue;
        }
        let succeeded = successes.take(key, state);
        commands.extend(command(job, key, &target, state, succeeded)?);
    }
    for (key, success) in successes.rest() {
        let target = targets.of(key)?;
        commands.push(ImportedCommand {
            succeeded: Some(true),
            ..ImportedCommand::attempted(target.item, target.number, success.attempt)
        });
    }
    notes.extend(of_succeeded(job.plan(), &commands));
    let executions = executions(state);
    let correlations = correlations(state, &targets)?;
    Ok(ImportedState {
        commands: commands.len(),
        pending: commands.iter().filter(|it| it.due.is_some()).count(),
        succeeded: commands.iter().filter(|it| is_skipped(job.plan(), it)).count(),
        event: Event::Job(JobEvent::StateImported {
            commands,
            executions: (!executions.is_empty()).then_some(executions),
            correlations: (!correlations.is_empty()).then_some(correlations),
        }),
        breakers,
        notes,
    })
}

fn is_skipped(plan: &Plan, command: &ImportedCommand) -> bool {
    command.has_succeeded() && plan.is_skipped_after_import(command.command)
}

/// What follows from the outputs of commands, which the file does not have.
fn of_succeeded(plan: &Plan, commands: &[ImportedCommand]) -> Vec<String> {
    let succeeded = commands.iter().filter(|it| it.has_succeeded());
    let numbers: BTreeSet<CommandId> = succeeded.map(|it| it.command).collect();
    let notes = numbers.into_iter().filter_map(|number| {
        let command = plan.command(number)?;
        let id = &command.id;
        if plan.workflow().flow.is_some() {
            return Some(format!(
                "`{id}` had succeeded; it runs again, because its outputs are not in the file"
            ));
        }
        let used = command.capture.is_some() || plan.wants_output_of_failure(number);
        let skipped = used && plan.is_skipped_after_import(number);
        skipped.then(|| format!("`{id}` has succeeded and does not run again; its output is null"))
    });
    notes.collect()
}

/// Those that the histories of commands do not list.
fn executions(state: &RetryCheckpointState) -> Vec<ImportedExecution> {
    let others = state.retry_execution_history.iter().filter(|execution| {
        let listed = state.command_retry_states.get(&execution.command_id);
        let mut listed = listed.into_iter().flat_map(|state| &state.retry_history);
        !listed.any(|it| {
            (it.attempt_number, it.executed_at, it.success)
                == (execution.attempt_number, execution.executed_at, execution.success)
        })
    });
    let executions = others.map(|it| ImportedExecution {
        command: it.command_id.clone(),
        attempt: AttemptNumber(it.attempt_number),
        at: it.executed_at.map(|at| at.0),
        succeeded: it.success,
    });
    executions.collect()
}

/// By item, whether the file names the item or one of its commands.
fn correlations(
    state: &RetryCheckpointState,
    targets: &Targets<'_>,
) -> Result<Vec<ImportedCorrelation>, ImportError> {
    let mut known = BTreeMap::new();
    for (key, id) in &state.retry_correlation_map {
        let printable = id.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if id.trim().is_empty() || id.len() > MOST_CORRELATION || !printable {
            return Err(ImportError::Correlation { key: key.clone(), id: id.clone() });
        }
        let item = if targets.has_item(key) { key.clone() } else { targets.of(key)?.item };
        // The first command of an item stands for it.
        known.entry(item).or_insert_with(|| id.clone());
    }
    Ok(known.into_iter().map(|(item, id)| ImportedCorrelation { item, id }).collect())
}

/// The commands that keys of the file may name.
pub(super) struct Targets<'p> {
    pub(super) plan: &'p Plan,
    /// Of the map; `None` if they are not known yet.
    items: Option<&'p BTreeSet<String>>,
}

impl<'p> Targets<'p> {
    pub(super) fn of(&self, key: &str) -> Result<CommandTarget<'p>, ImportError> {
        let target = CommandTarget::of(self.plan, key)?;
        if self.plan.is_map(self.plan.step_of(target.number))
            && self.items.is_some_and(|items| !items.contains(&target.item))
        {
            return Err(ImportError::UnknownItem { key: key.to_owned(), item: target.item });
        }
        Ok(target)
    }

    /// Whether this is the name of an item, and not of a command.
    fn has_item(&self, name: &str) -> bool {
        if let Some(items) = self.items {
            return items.contains(name);
        }
        // Any name may be one of an item that is not known yet.
        let mut numbers = self.plan.numbered().map(|(number, _)| self.plan.step_of(number));
        numbers.any(|step| self.plan.is_map(step)) && CommandTarget::of(self.plan, name).is_err()
    }
}

pub(super) struct CommandTarget<'p> {
    pub(super) item: String,
    pub(super) number: CommandId,
    pub(super) command: &'p Command,
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
    succeeded: bool,
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
    if let Some(allowed) = most.filter(|most| u64::from(made) > *most && !succeeded) {
        let key = key.to_owned();
        return Err(ImportError::TooManyAttempts { key, made, allowed });
    }
    let used_up = succeeded || allowed.is_some_and(|allowed| u64::from(made) >= allowed);
    let due = state.next_retry_at.filter(|_| !succeeded).map(|InstantText(due)| due);
    if used_up && due.is_some() {
        let key = key.to_owned();
        return Err(ImportError::NoAttemptLeft { key, made });
    }
    let limits = policy.terms().limits();
    let (spent, previous) = delays(job, target, state, earlier, used_up, policy.terms().pace());
    if let Some(budget) = limits.retry_budget().filter(|budget| spent > *budget && !succeeded) {
        let key = key.to_owned();
        return Err(ImportError::OverBudget { key, spent, budget });
    }
    let last = state.retry_history.last();
    let error = last.and_then(|last| last.error.clone());
    Ok(Some(ImportedCommand {
        retries: if used_up { earlier } else { made },
        spent,
        previous: Some(previous),
        due,
        expires: due.and_then(|due| limits.budget_expires_at(spent, due)),
        error: error.map(StoredText::Itself),
        succeeded: succeeded.then_some(true),
        broken: state.is_circuit_broken.then_some(true),
        history: Some(state.retry_history.iter().map(attempt).collect()),
        last_attempt_at: state.last_attempt_at.map(|at| at.0),
        ..ImportedCommand::attempted(target.item.clone(), target.number, made)
    }))
}

impl ImportedCommand {
    fn attempted(item: String, command: CommandId, attempts: u32) -> Self {
        Self {
            item,
            command,
            attempts,
            retries: attempts.saturating_sub(1),
            spent: Duration::ZERO,
            previous: None,
            due: None,
            expires: None,
            error: None,
            succeeded: None,
            broken: None,
            history: None,
            last_attempt_at: None,
        }
    }
}

fn attempt(listed: &RetryAttempt) -> ImportedAttempt {
    let span = |span: super::shape::DurationText| span.0.min(LONGEST);
    ImportedAttempt {
        number: listed.attempt_number,
        at: listed.executed_at.map(|at| at.0),
        took: listed.duration.map(span),
        succeeded: listed.success,
        error: listed.error.clone().map(StoredText::Itself),
        delay: listed.backoff_applied.map(span),
    }
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
    let current = state.backoff_state.as_ref().and_then(|it| it.current_delay).map(|it| it.0);
    if state.next_retry_at.is_some() && !used_up {
        let current = current.unwrap_or_else(|| pace.delay(retry, previous, draws).drawn);
        spent = spent.saturating_add(current);
        previous = Some(current);
    }
    let spent = state.delay_spent.map_or(spent, |state| state.0);
    let previous = current.or(previous).unwrap_or_default();
    (spent.min(LONGEST), previous.min(LONGEST))
}

/// The longest delay, some 584 years: a file may hold any duration.
const LONGEST: Duration = Duration::from_nanos(u64::MAX - 1);

/// The most delays that are computed for a file with the number of attempts only.
const FILLED: u32 = 100_000;
