//! The task of an attempt or of an input command: its work, its environment, its time.

use std::time::Duration;

use undaunted_policy::Timestamp;

use super::action::TaskWork;
use super::values::{ItemValues, ValueFiles, within};
use crate::event::AttemptId;
use crate::id::{AttemptNumber, CommandId, ItemId, StepId};
use crate::job::{ActiveItem, Activity, Job};
use crate::workflow::InputSource;
use crate::workflow::template::ValueError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub work: TaskWork,
    /// Variables to add to the environment, later ones over earlier ones.
    pub env: Vec<(String, String)>,
    pub working_dir: String,
    pub timeout: Option<Duration>,
    /// In bytes; the executor ends an attempt that writes more.
    pub output_limit: Option<u64>,
    pub wants_output: bool,
    pub reads_item_file: bool,
    pub stdin: Option<String>,
    pub keeps: KeptOutput,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptOutput {
    /// Up to the size of a value, if another command refers to it.
    #[default]
    Value,
    /// Up to the size of the items of a map.
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
    let Some(number) = number.or_else(|| job.plan().first(item.step)) else { return Ok(None) };
    let Some(command) = job.plan().command(number) else { return Ok(None) };
    let of = AttemptId::new(item, number, AttemptNumber(active.map_or(1, next_attempt)));
    let again = job.step(of.step).map_or(0, |state| state.again);
    let round = active.map_or(again.saturating_add(1), |active| active.round);
    let values = ItemValues::new(job, of, round, files);
    // Only programs have an environment.
    let is_program = command.action.is_program();
    let mut env = Vec::new();
    if is_program {
        env = values.declared()?;
        for (name, value) in &command.env {
            env.push((name.clone(), value.render(&values)?));
        }
    }
    let work = command.action.work(&values, &mut env)?;
    if is_program {
        env.extend(attempt_env(&values));
    }
    let directory = command.working_dir.as_ref().map(|path| path.render(&values)).transpose()?;
    // An attempt has no more time than its item and its job.
    let limit = job.attempt_limit(of.step, number, active.and_then(ActiveItem::began), now);
    Ok(Some(Task {
        work,
        env,
        working_dir: within(&job.submitted().working_dir, directory.as_deref()),
        timeout: limit.map(|(end, _)| end.since(now)),
        output_limit: command.output_limit,
        wants_output: job.plan().wants_output(number),
        reads_item_file: values.needs_item_file(),
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

fn attempt_env(values: &ItemValues<'_>) -> impl Iterator<Item = (String, String)> {
    let (job, of) = (values.job, values.of);
    // An environment variable cannot hold a NUL character.
    let identity = job.identity(of.item()).replace('\0', "\u{fffd}");
    [
        ("UNDAUNTED_JOB", job.id().to_owned()),
        ("UNDAUNTED_ITEM", identity),
        ("UNDAUNTED_ATTEMPT", of.attempt.0.to_string()),
        ("UNDAUNTED_RECEIPT_TOKEN", values.receipt_token()),
        ("UNDAUNTED_CORRELATION_ID", values.correlation_id()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputTask {
    File(String),
    /// A program whose output holds the items.
    Run(Task),
}

/// Where the items of a map come from; `None` if the step is not a map.
pub fn input_task(job: &Job, step: StepId, files: ValueFiles<'_>) -> Result<Option<InputTask>, ValueError> {
    let Some(map) = job.plan().map(step) else { return Ok(None) };
    // No command belongs to an input, so nothing refers to its attempt.
    let of = AttemptId::new(step.item(0), CommandId::default(), AttemptNumber::default());
    let values = ItemValues::new(job, of, 0, files);
    Ok(Some(match &map.input.source {
        InputSource::File(path) => {
            let path = path.render(&values)?;
            InputTask::File(within(&job.submitted().working_dir, Some(&path)))
        }
        InputSource::Shell(text) => {
            let script = text.render(&values)?;
            let mut env = values.declared()?;
            env.extend(script.env);
            env.push(("UNDAUNTED_JOB".to_owned(), job.id().to_owned()));
            InputTask::Run(Task {
                work: TaskWork::shell(job, script.text),
                env,
                working_dir: job.submitted().working_dir.clone(),
                timeout: None,
                output_limit: None,
                wants_output: true,
                reads_item_file: false,
                stdin: None,
                keeps: KeptOutput::Items,
            })
        }
    }))
}
