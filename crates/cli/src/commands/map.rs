//! `undaunted map`: one command for each line of input, retried and durable.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use undaunted_engine::event::OutputPassing;
use undaunted_engine::item_bytes::item_value;
use undaunted_engine::view::{JobStatus, report};
use undaunted_runner::keeper::WaitingKeeper;
use undaunted_runner::secrets::Secrets;

use crate::commands::run::{ignore_broken_pipe, print_report};
use crate::flag_values::at_least_one;
use crate::foreground::OnSignal;
use crate::screen::summary;
use crate::{
    CommandError, Display, Exit, OutputPrinter, Result, RetryFlags, StorePlace, TypedCommand, environment,
    foreground, typed,
};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "\
Examples:
  undaunted map -- curl -fsSO {} < urls.txt
  find . -name '*.png' -print0 | undaunted map -0 -j 4 -- optipng {}
  undaunted map -a hosts.txt --tag --attempts 5 -- ssh {} uptime

{} is replaced by the line, anywhere in the arguments; without {}, the line is added as the last
argument. A line is never split. The output of a command is printed when its item is done, on the
streams it was written to. If undaunted is killed, `undaunted resume @last` resumes the job and may
print the last output again. `undaunted dlq ls @last` lists the items that failed for good.")]
pub(crate) struct MapArgs {
    /// Run this many commands at a time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = at_least_one, allow_negative_numbers = true)]
    jobs: u32,

    /// Read items from a file instead of standard input
    #[arg(short = 'a', long, value_name = "FILE")]
    arg_file: Option<PathBuf>,

    /// Split the input at NUL bytes instead of newlines
    #[arg(short = '0', long)]
    null: bool,

    /// Print output in input order
    #[arg(short = 'k', long)]
    keep_order: bool,

    /// Prefix every line of output with its item and a tab
    #[arg(long)]
    tag: bool,

    /// Do not report retries
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object per item, with its output, and the report at the end
    #[arg(long)]
    json: bool,

    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<String>,

    // Last, because clap puts the options after it under the same heading.
    #[command(flatten)]
    retry: RetryFlags,
}

pub(crate) fn run(store: Option<&Path>, args: &MapArgs, waiting: Option<WaitingKeeper>) -> Result<Exit> {
    let items = items(&read(args.arg_file.as_deref())?, args.null);
    let operator = environment::operator()?;
    let (words, command) = typed::command(&args.command, Some("{}"), &args.retry, &operator.ceilings)?;
    let place = StorePlace::named(store)?;
    let workflow = json!({
        "name": "map",
        "mode": "mapreduce",
        "agents": { "program": words },
        "map": {
            "input": { "file": "", "format": "json" },
            "max_parallel": args.jobs,
            "agent_template": [command],
        },
    });
    let mut typed = TypedCommand::new(&place, workflow, waiting)?;
    let jobs = place.open()?;
    typed.items(&items)?;
    args.retry.put_pool(&mut typed.workflow, &operator.ceilings);
    args.retry.print_notes(&operator.ceilings);
    let how = match (args.keep_order, args.tag) {
        (false, false) => OutputPassing::Grouped,
        (true, false) => OutputPassing::InOrder,
        (false, true) => OutputPassing::Tagged,
        (true, true) => OutputPassing::TaggedInOrder,
    };
    let (claimed, folder) = typed.submit(&jobs, &operator, how)?;
    let display = Display::beside_output(&claimed.job, args.quiet || args.json);
    let mut printer = OutputPrinter::new(&claimed.job, &folder, how, display).with_json(args.json);
    let (job, signals) =
        foreground::run(&jobs, claimed, Secrets::default(), &mut printer, OnSignal::Suspend)?;
    printer.finish()?;
    let exit = Exit::of(JobStatus::from(job.stage));
    // Standard output is for the output of the commands, or for JSON.
    if args.json {
        ignore_broken_pipe(print_report(&job, true))?;
    } else if exit != Exit::Done || !args.quiet {
        summary::show(&mut io::stderr().lock(), &report(&job))?;
    }
    Ok(if signals.count > 1 { Exit::Interrupted } else { exit })
}

fn read(file: Option<&Path>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match file {
        None => {
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| CommandError::Usage(format!("cannot read standard input: {error}")))?;
        }
        Some(path) => {
            let opened = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
            opened.map_err(|error| {
                CommandError::not_found("no_file", format!("cannot read `{}`: {error}", path.display()))
            })?;
        }
    }
    Ok(bytes)
}

/// The items of the input, which end with a newline or a zero byte. Empty ones are skipped.
fn items(bytes: &[u8], null: bool) -> Vec<Value> {
    let end = if null { b'\0' } else { b'\n' };
    let pieces = bytes.split(|byte| *byte == end).map(|piece| {
        let carriage = if null { None } else { piece.strip_suffix(b"\r") };
        carriage.unwrap_or(piece)
    });
    pieces.filter(|piece| !piece.is_empty()).map(|piece| item_value(piece.to_vec())).collect()
}
