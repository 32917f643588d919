//! `undaunted exec`: one command, retried and durable.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::Args;
use serde_json::json;
use undaunted_engine::event::OutputPassing;
use undaunted_engine::job::JobStage;
use undaunted_policy::FailureCause;
use undaunted_runner::keeper::WaitingKeeper;
use undaunted_runner::secrets::Secrets;

use crate::foreground::OnSignal;
use crate::{
    Display, Exit, OutputPrinter, Result, RetryFlags, StorePlace, TypedCommand, environment, foreground,
    typed,
};

/// The status of a program that SIGPIPE has killed: 128 + 13.
const UNREAD: u8 = 141;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted exec -- curl -fsS https://example.org/data
  undaunted exec --attempts 5 --backoff fibonacci --jitter -- ./deploy
  pg_dump db | undaunted exec --timeout 5m -- ./upload

Standard input is read first, unless it is a terminal, and passed to every attempt. Output passes
through. The exit status is that of the last attempt: 124 if it timed out, 128 + N if signal N
killed it, 125 if undaunted itself failed. SIGINT, SIGTERM and SIGHUP are passed on to the command,
which is then not retried. If undaunted is killed, `undaunted resume @last` resumes the job.")]
pub(crate) struct ExecArgs {
    /// Do not report retries
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<String>,

    // Last, because clap puts the options after it under the same heading.
    #[command(flatten)]
    retry: RetryFlags,
}

pub(crate) fn run(store: Option<&Path>, args: &ExecArgs, waiting: Option<WaitingKeeper>) -> Result<Exit> {
    let operator = environment::operator()?;
    let (words, command) = typed::command(&args.command, None, &args.retry, &operator.ceilings)?;
    let mut workflow = json!({ "name": "exec", "agents": { "program": words }, "commands": [command] });
    args.retry.put_pool(&mut workflow, &operator.ceilings);
    args.retry.print_notes(&operator.ceilings);
    let place = StorePlace::named(store)?;
    let mut typed = TypedCommand::new(&place, workflow, waiting)?;
    let jobs = place.open()?;
    let input = io::stdin().lock();
    if !input.is_terminal() {
        typed.stdin(input)?;
    }
    let (claimed, folder) = typed.submit(&jobs, &operator, OutputPassing::Through)?;
    let display = Display::beside_output(&claimed.job, args.quiet);
    let mut printer = OutputPrinter::new(&claimed.job, &folder, OutputPassing::Through, display);
    let (job, signals) = foreground::run(&jobs, claimed, Secrets::default(), &mut printer, OnSignal::PassOn)?;
    printer.finish()?;
    if job.stage == JobStage::Cancelled
        && let Ok(signal @ 1..) = u8::try_from(signals.first)
    {
        return Ok(Exit::Status(128_u8.saturating_add(signal)));
    }
    if printer.unread.load(Ordering::Acquire) {
        return Ok(Exit::Status(UNREAD));
    }
    Ok(match job.stage {
        JobStage::Completed => Exit::Done,
        JobStage::Suspended | JobStage::Running => {
            let _ = writeln!(io::stderr(), "resume:  undaunted resume {}", job.id());
            Exit::Suspended
        }
        JobStage::Stopping(_) | JobStage::Partial | JobStage::Failed | JobStage::Cancelled => {
            Exit::Status(status(printer.cause))
        }
    })
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
