//! The task of an attempt: its command, its environment, its time.

use std::time::Duration;

use undaunted_policy::Timestamp;

use super::call::{Call, call, step_call};
use super::function::{FunctionCall, function_call};
use super::identity::{correlation_id, receipt_token};
use super::seen::{Files, Seen, within};
use super::sub_flow::{SubFlow, sub_flow};
use crate::event::Subject;
use crate::job::{Active, Doing, Job};
use crate::workflow::template::ValueError;
use crate::workflow::{Action, Command};

/// What an attempt is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The work itself.
    pub work: TaskWork,
    /// Variables to add to the environment, later ones over earlier ones.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub working_dir: String,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Bytes of output after which it is ended.
    pub output_limit: Option<u64>,
    /// Whether something depends on what it writes.
    pub wants_output: bool,
    /// Whether it reads the file that holds the item.
    pub reads_item_file: bool,
    /// The file it reads; nothing if none.
    pub stdin: Option<String>,
    /// Whether all it writes is kept, because somebody reads it.
    pub keeps_all: bool,
}

/// The work of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskWork {
    /// Run a program.
    Run {
        /// It and its arguments.
        argv: Vec<String>,
    },
    /// Send a request.
    Call(Box<Call>),
    /// Call a function.
    Function(Box<FunctionCall>),
    /// Run another flow.
    Flow(Box<SubFlow>),
    /// Write a file.
    Write {
        /// Where.
        path: String,
        /// What.
        content: String,
        /// Whether missing directories are made.
        create_dirs: bool,
        /// Its permissions.
        mode: Option<u32>,
    },
}

/// What the next attempt of an item is to do.
///
/// # Errors
///
/// A value that is missing, too large or cannot be given to a command.
pub fn task(
    job: &Job,
    step: u32,
    item: u32,
    files: Files<'_>,
    now: Timestamp,
) -> Result<Option<Task>, ValueError> {
    let active = job.active(step, item);
    let number = active.map(|active| active.command);
    let Some(number) = number.or_else(|| job.plan().first(step)) else {
        return Ok(None);
    };
    let Some(command) = job.plan().command(number) else {
        return Ok(None);
    };
    let seen = Seen::new(job, step, item, files);
    // Only programs have an environment.
    let is_program = matches!(command.action, Action::Shell(_) | Action::Agent { .. });
    let mut env = Vec::new();
    if is_program {
        env = seen.declared()?;
        for (name, value) in &command.env {
            env.push((name.clone(), value.render(&seen)?));
        }
    }
    let of = Subject {
        step,
        item,
        command: number,
        attempt: active.map_or(1, next_attempt),
    };
    let round = round_of(job, of, active);
    let work = work_of(&seen, command, of, round, &mut env)?;
    if is_program {
        env.extend(known_to_commands(job, of, round));
    }
    let directory = command.working_dir.as_ref();
    let directory = directory.map(|path| path.render(&seen)).transpose()?;
    Ok(Some(Task {
        work,
        env,
        working_dir: within(&job.submitted().working_dir, directory.as_deref()),
        timeout: time_left(job, of, active, own_timeout(command), now),
        output_limit: command.output_limit,
        wants_output: job.plan().wants_output(number),
        reads_item_file: seen.asked_for_item_file(),
        stdin: job.submitted().stdin.clone(),
        keeps_all: job.submitted().passing.is_some(),
    }))
}

fn work_of(
    seen: &Seen<'_>,
    command: &Command,
    of: Subject,
    round: u32,
    env: &mut Vec<(String, String)>,
) -> Result<TaskWork, ValueError> {
    Ok(match &command.action {
        Action::Shell(text) => {
            let script = text.render(seen)?;
            env.extend(script.env);
            TaskWork::shell(seen.job, script.text)
        }
        Action::Agent { name, prompt } => {
            let prompt = prompt.render(seen)?;
            let argv = seen.job.workflow().agents.get(name);
            let argv = argv.into_iter().flatten();
            TaskWork::Run {
                argv: argv.map(|word| word.replace("{prompt}", &prompt)).collect(),
            }
        }
        Action::WriteFile(file) => TaskWork::Write {
            path: file.path.render(seen)?,
            content: file.content.render(seen)?,
            create_dirs: file.create_dirs,
            mode: file.mode,
        },
        Action::Function(function) => {
            TaskWork::Function(Box::new(function_call(seen, function, of, round)?))
        }
        Action::Step(step) => TaskWork::Call(Box::new(step_call(seen, step, of, round))),
        Action::SubFlow(goals) => TaskWork::Flow(Box::new(sub_flow(seen, goals, of, round))),
        Action::Http(http) => {
            let with_secrets = seen.with_secrets();
            let call = call(&with_secrets, http, of, round)?;
            if with_secrets.asked_for_item_file() {
                seen.ask_for_item_file();
            }
            TaskWork::Call(Box::new(call))
        }
    })
}

impl TaskWork {
    /// A text for the shell of a job's workflow.
    pub(super) fn shell(job: &Job, text: String) -> Self {
        Self::Run {
            argv: vec![job.workflow().shell.clone(), "-c".to_owned(), text],
        }
    }
}

/// The number of the attempt that is made now. One that was recorded and never began has its own.
fn next_attempt(active: &Active) -> u32 {
    match active.doing {
        Doing::Running(_) => active.attempts,
        Doing::Waiting(_) | Doing::Held | Doing::Undecided => active.attempts.saturating_add(1),
    }
}

fn round_of(job: &Job, of: Subject, active: Option<&Active>) -> u32 {
    let again = job.step(of.step).map_or(0, |state| state.again);
    let first = again.saturating_add(1);
    active.map_or(first, |active| active.round)
}

fn known_to_commands(job: &Job, of: Subject, round: u32) -> impl Iterator<Item = (String, String)> {
    let identity = job.step(of.step).map(|state| state.items.identity(of.item));
    // No environment can hold a zero character.
    let identity = identity.unwrap_or_default().replace('\0', "\u{fffd}");
    [
        ("UNDAUNTED_JOB", job.id().to_owned()),
        ("UNDAUNTED_ITEM", identity),
        ("UNDAUNTED_ATTEMPT", of.attempt.to_string()),
        ("UNDAUNTED_RECEIPT_TOKEN", receipt_token(job, of, round)),
        (
            "UNDAUNTED_CORRELATION_ID",
            correlation_id(job, of.step, of.item),
        ),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
}

/// How long an attempt may take by itself. A request that nobody limits is not waited for for ever.
fn own_timeout(command: &Command) -> Option<Duration> {
    const REQUEST: Duration = Duration::from_secs(30);
    match command.action {
        Action::Http(_) | Action::Step(_) => Some(command.timeout.unwrap_or(REQUEST)),
        _ => command.timeout,
    }
}

/// An attempt has no more time than its item and its job.
fn time_left(
    job: &Job,
    of: Subject,
    active: Option<&Active>,
    timeout: Option<Duration>,
    now: Timestamp,
) -> Option<Duration> {
    // The time of an item that has not begun begins to run with this attempt.
    let began = active.and_then(Active::began).unwrap_or(now);
    let deadline = job.deadline_for(of.step, of.command, Some(began));
    let left = deadline.map(|deadline| deadline.since(now));
    timeout.into_iter().chain(left).min()
}
