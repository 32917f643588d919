//! `undaunted exec`: one command, retried and durable.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use clap::Args;
use serde_json::{Map, Value, json};
use undaunted_engine::event::OutputPassing;
use undaunted_engine::job::JobStage;
use undaunted_policy::FailureCause;
use undaunted_runner::secrets::Secrets;

use crate::exit::Exit;
use crate::foreground;
use crate::jobs::StorePlace;
use crate::passing::OutputPrinter;
use crate::retry_flags::RetryFlags;
use crate::screen::progress::Display;
use crate::typed::{TypedCommand, argv, name_of};

/// The status of a program that SIGPIPE has ended: 128 + 13.
const UNREAD: u8 = 141;

/// The command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted exec -- curl -fsS https://example.org/data
  undaunted exec --attempts 5 --backoff fibonacci --jitter -- ./deploy
  pg_dump db | undaunted exec --timeout 5m -- ./upload

Input that is not a terminal is read first and given to every attempt; output passes through.
The exit status is the last one of the command: 124 if it timed out, 128 and the signal if one
ended it, 125 for errors of undaunted itself. If it is killed, `undaunted resume @last` goes
on.")]
pub(crate) struct ExecArgs {
    /// Say nothing about retries
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<String>,

    // Last: what comes after it would stand under its heading.
    #[command(flatten)]
    retry: RetryFlags,
}

pub(crate) fn run(store: Option<&Path>, args: &ExecArgs) -> Result<Exit> {
    let (words, prompt) = argv(&args.command, None)?;
    let mut command = Map::new();
    command.insert("program".to_owned(), prompt.into());
    command.insert("id".to_owned(), name_of(&args.command).into());
    args.retry.put(&mut command);
    let mut workflow = json!({
        "name": "exec",
        "agents": { "program": words },
        "commands": [Value::from(command)],
    });
    if let Some(retries) = args.retry.job_retries() {
        put(&mut workflow, "retry_budget", retries.into());
        // An item may use as many as its own flag allows.
        let share = args.retry.attempts();
        put(&mut workflow, "retry_budget_per_workflow", share.into());
    }
    let place = StorePlace::named(store)?;
    let mut typed = TypedCommand::new(&place, workflow)?;
    let jobs = place.open()?;
    let input = io::stdin().lock();
    if !input.is_terminal() {
        typed.stdin(input)?;
    }
    let (held, folder) = typed.submit(&jobs, OutputPassing::Through)?;
    let display = Display::beside_output(&held.job, args.quiet);
    let mut passer = OutputPrinter::new(&held.job, &folder, OutputPassing::Through, display);
    let (job, interrupts) = foreground::run(&jobs, held, Secrets::default(), &mut passer)?;
    passer.trouble()?;
    if interrupts > 1 {
        return Ok(Exit::Interrupted);
    }
    if passer.unread.load(Ordering::Acquire) {
        return Ok(Exit::Status(UNREAD));
    }
    Ok(match job.stage {
        JobStage::Completed => Exit::Done,
        JobStage::Suspended | JobStage::Running => {
            let _ = writeln!(io::stderr(), "go on:  undaunted resume {}", job.id());
            Exit::Suspended
        }
        JobStage::Stopping(_) | JobStage::Partial | JobStage::Failed | JobStage::Cancelled => {
            Exit::Status(status(passer.cause))
        }
    })
}

pub(crate) fn put(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value);
    }
}

fn status(cause: Option<FailureCause>) -> u8 {
    const TIMEOUT: u8 = 124;
    const OWN: u8 = 125;
    match cause {
        Some(FailureCause::Exit(code)) => u8::try_from(code).unwrap_or(OWN),
        Some(FailureCause::Signal(signal)) => {
            u8::try_from(signal).map_or(OWN, |signal| 128_u8.saturating_add(signal))
        }
        Some(FailureCause::Timeout) => TIMEOUT,
        _ => OWN,
    }
}
