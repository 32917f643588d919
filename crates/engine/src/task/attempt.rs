//! The task of an attempt: its command, its environment, its time.

use std::time::Duration;

use undaunted_policy::Timestamp;

use super::action::TaskWork;
use super::identity::{correlation_id, receipt_token};
use super::values::{ItemValues, ValueFiles, within};
use crate::event::AttemptId;
use crate::id::{AttemptNumber, ItemId};
use crate::job::{ActiveItem, Activity, Job};
use crate::workflow::template::ValueError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub work: TaskWork,
    /// Variables to add to the environment, later ones over earlier ones.
    pub env: Vec<(String, String)>,
    pub working_dir: String,
    pub timeout: Option<Duration>,
    /// In bytes; an attempt that writes more is ended.
    pub output_limit: Option<u64>,
    pub wants_output: bool,
    pub reads_item_file: bool,
    pub stdin: Option<String>,
    pub keeps: KeptOutput,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptOutput {
    /// As much as a value may have, if something depends on it.
    #[default]
    Value,
    /// As much as the items of a map may have.
    Items,
    /// All of it, because the caller passes it on.
    All,
}

/// `None` if the item has no command. Fails if a value is missing, too large, or cannot be given to a
/// command.
pub fn task(
    job: &Job,
    item: ItemId,
    files: ValueFiles<'_>,
    now: Timestamp,
) -> Result<Option<Task>, ValueError> {
    let active = job.active(item);
    let number = active.map(|active| active.command);
    let Some(number) = number.or_else(|| job.plan().first(item.step)) else {
        return Ok(None);
    };
    let Some(command) = job.plan().command(number) else {
        return Ok(None);
    };
    let seen = ItemValues::new(job, item, files);
    // Only programs have an environment.
    let is_program = command.action.is_program();
    let mut env = Vec::new();
    if is_program {
        env = seen.declared()?;
        for (name, value) in &command.env {
            env.push((name.clone(), value.render(&seen)?));
        }
    }
    let attempt = AttemptNumber(active.map_or(1, next_attempt));
    let of = AttemptId::new(item, number, attempt);
    let again = job.step(of.step).map_or(0, |state| state.again);
    let round = active.map_or(again.saturating_add(1), |active| active.round);
    let work = command.action.work(&seen, of, round, &mut env)?;
    if is_program {
        env.extend(attempt_env(job, of, round));
    }
    let directory = command.working_dir.as_ref();
    let directory = directory.map(|path| path.render(&seen)).transpose()?;
    let timeout = command.timeout.or(command.action.default_timeout());
    Ok(Some(Task {
        work,
        env,
        working_dir: within(&job.submitted().working_dir, directory.as_deref()),
        timeout: time_left(job, of, active, timeout, now),
        output_limit: command.output_limit,
        wants_output: job.plan().wants_output(number),
        reads_item_file: seen.needs_item_file(),
        stdin: job.submitted().stdin.clone(),
        keeps: match job.submitted().passing {
            Some(_) => KeptOutput::All,
            None => KeptOutput::Value,
        },
    }))
}

/// An attempt that was recorded and never began keeps its number.
fn next_attempt(active: &ActiveItem) -> u32 {
    match active.activity {
        Activity::Running(_) => active.attempts,
        Activity::Waiting(_) | Activity::Held | Activity::Undecided => active.attempts.saturating_add(1),
    }
}

fn attempt_env(job: &Job, of: AttemptId, round: u32) -> impl Iterator<Item = (String, String)> {
    let state = job.step(of.step);
    let identity = state.map(|state| state.items.identity(of.index));
    // An environment variable cannot hold a NUL character.
    let identity = identity.unwrap_or_default().replace('\0', "\u{fffd}");
    [
        ("UNDAUNTED_JOB", job.id().to_owned()),
        ("UNDAUNTED_ITEM", identity),
        ("UNDAUNTED_ATTEMPT", of.attempt.0.to_string()),
        ("UNDAUNTED_RECEIPT_TOKEN", receipt_token(job, of.item(), of.command, round)),
        ("UNDAUNTED_CORRELATION_ID", correlation_id(job, of.item())),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
}

/// An attempt has no more time than its item and its job.
fn time_left(
    job: &Job,
    of: AttemptId,
    active: Option<&ActiveItem>,
    timeout: Option<Duration>,
    now: Timestamp,
) -> Option<Duration> {
    // The deadline of an item that has not begun counts from this attempt.
    let began = active.and_then(ActiveItem::began).unwrap_or(now);
    let deadline = job.deadline_for(of.step, of.command, Some(began));
    let left = deadline.map(|deadline| deadline.since(now));
    timeout.into_iter().chain(left).min()
}
