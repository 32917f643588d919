//! Which commands the file marks as succeeded: by the last attempt of their history, or by an execution.
//!
//! A command with a history is judged by it, because executions may be of earlier rounds. A command whose handler has
//! recovered it counts as succeeded too.

use std::collections::BTreeMap;

use super::importing::{CommandTarget, ImportError, Targets};
use super::shape::{CommandRetryState, InstantText, RetryCheckpointState};

/// The commands whose last execution succeeded.
pub(super) struct Successes<'f>(BTreeMap<&'f str, Success>);

#[derive(Clone, Copy, Debug)]
pub(super) struct Success {
    pub(super) attempt: u32,
    /// By its handler.
    recovered: bool,
}

/// Its order is that of time.
type LastExecution = (Option<InstantText>, u32, bool);

impl<'f> Successes<'f> {
    /// Fails for an execution of a command or an item that does not exist.
    pub(super) fn of(file: &'f RetryCheckpointState, targets: &Targets<'_>) -> Result<Self, ImportError> {
        let mut last: BTreeMap<&str, LastExecution> = BTreeMap::new();
        for execution in &file.retry_execution_history {
            let key = execution.command_id.as_str();
            // The document does not say what an execution is, so other systems may name no command.
            if key.is_empty() {
                continue;
            }
            let known = (execution.executed_at, execution.attempt_number, execution.success);
            let found = last.entry(key).or_insert(known);
            *found = (*found).max(known);
        }
        let mut succeeded = BTreeMap::new();
        for (key, execution) in &last {
            let target = targets.of(key)?;
            let (_, attempt, success) = *execution;
            let recovered = !success && is_recovered(key, &target, *execution, &last);
            if (success || recovered) && targets.plan.is_skipped_after_import(target.number) {
                succeeded.insert(*key, Success { attempt: attempt.max(1), recovered });
            }
        }
        Ok(Self(succeeded))
    }

    /// Whether a command with a state has succeeded.
    pub(super) fn take(&mut self, key: &str, state: &CommandRetryState) -> bool {
        let by_execution = self.0.remove(key).filter(|_| state.next_retry_at.is_none());
        match state.retry_history.last() {
            Some(last) => last.success || by_execution.is_some_and(|success| success.recovered),
            None => by_execution.is_some(),
        }
    }

    /// The commands without a state that have succeeded.
    pub(super) fn rest(&self) -> impl Iterator<Item = (&'f str, Success)> {
        self.0.iter().map(|(key, success)| (*key, *success))
    }
}

/// Whether the handler of a failed command succeeded later, and the item went on.
fn is_recovered(
    key: &str,
    target: &CommandTarget<'_>,
    failed: LastExecution,
    last: &BTreeMap<&str, LastExecution>,
) -> bool {
    let handler = target.command.on_failure.as_deref();
    let handler = handler.filter(|handler| handler.max_attempts == 0 && !handler.fail_workflow);
    let end = handler.and_then(|handler| handler.commands.last());
    let item = key.strip_suffix(&target.command.id).unwrap_or_default();
    let end = end.and_then(|end| last.get(format!("{item}{}", end.id).as_str()));
    end.is_some_and(|(at, _, success)| *success && *at >= failed.0)
}
