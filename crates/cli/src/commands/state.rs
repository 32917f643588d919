//! `undaunted state`: exports and imports the retry state of a job.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use undaunted_engine::breaker::{BreakerFact, BreakerState};
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::ItemId;
use undaunted_engine::job::Job;
use undaunted_engine::state_file::shape::RetryCheckpointState;
use undaunted_engine::state_file::{export, import};
use undaunted_engine::view::ImportedView;
use undaunted_runner::clock::Clock;
use undaunted_runner::{breakers, journal};

use super::run::{plan_file, submit};
use crate::flag_values::whole_number;
use crate::screen::{count, print};
use crate::{CommandError, Exit, Jobs, OpenedJob, Result, StoreUse};

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Debug, Subcommand)]
enum StateCommand {
    /// Print the retry state of unsettled items and dead letters as JSON
    #[command(after_help = "\
Example:
  undaunted state export @last > retries.json

The object is a `RetryCheckpointState`; docs/json.md describes its fields.")]
    Export(StateExportArgs),
    /// Create a suspended job from a workflow and a retry state file
    #[command(after_help = "\
Examples:
  undaunted state import retries.json --workflow nightly.yaml
  undaunted resume @last

Nothing runs until the job is resumed. Pending retries keep their due times. If the file does not
fit the workflow, it is refused and nothing is stored.")]
    Import(StateImportArgs),
}

#[derive(Debug, Args)]
struct StateExportArgs {
    /// Id of the job, a unique prefix, or @last
    job: String,

    /// Accepted for consistency; the output is always JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct StateImportArgs {
    /// State file of `state export` or of another system; `-` is standard input
    file: PathBuf,

    /// Workflow file of the job
    #[arg(long, value_name = "FILE")]
    workflow: String,

    /// Draw jitter from this seed [default: random]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<u64>, allow_negative_numbers = true)]
    seed: Option<u64>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &StateArgs) -> Result<Exit> {
    match &args.command {
        StateCommand::Export(args) => export_state(store, args),
        StateCommand::Import(args) => import_state(store, args),
    }
}

fn export_state(store: Option<&Path>, args: &StateExportArgs) -> Result<Exit> {
    let jobs = Jobs::open_for(store, StoreUse::Read)?;
    let id = jobs.find(&args.job)?;
    let mut opened = OpenedJob::open(&jobs, &id)?;
    let job = opened.job();
    let open = |item: &ItemId| job.active(*item).is_some() || job.dead.contains_key(item);
    let open: Vec<ItemId> = opened.items().filter(open).collect();
    let histories = opened.histories(open)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let state = export(opened.job(), opened.breakers(), &histories);
    serde_json::to_writer_pretty(&mut out, &state)?;
    writeln!(out)?;
    out.flush()?;
    Ok(Exit::Done)
}

fn import_state(store: Option<&Path>, args: &StateImportArgs) -> Result<Exit> {
    let state = read(&args.file)?;
    let (source, plan) = plan_file(&args.workflow)?;
    let submitted = submit(&args.workflow, &source, &plan, args.seed)?;
    let now = Clock::set().now();
    let job =
        Job::begin(&Record { at: now, event: Event::Job(JobEvent::Submitted(Box::new(submitted.clone()))) });
    let job = job.map_err(|error| CommandError::Invalid(error.to_string()))?;
    let file = args.file.display();
    let imported = import(&state, &job).map_err(|error| CommandError::Invalid(format!("{file}: {error}")))?;
    let jobs = Jobs::open(store)?;
    let known = vec![imported.event.clone(), Event::Job(JobEvent::Suspended)];
    journal::deposit(&*jobs.store, submitted, &known, now)?;
    for open in &imported.breakers {
        // A breaker that is already open for longer stays as it is.
        let change = |state: &BreakerState| {
            let longer = state.until().is_some_and(|until| until >= open.until);
            let (since, until) = (open.since, open.until);
            (!longer).then_some(BreakerFact::Imported { since, until })
        };
        breakers::change(&*jobs.store, &open.name, change)?;
    }
    for note in &imported.notes {
        writeln!(io::stderr(), "note: {note}")?;
    }
    let view = ImportedView {
        job: job.id().to_owned(),
        status: "suspended",
        commands: imported.commands,
        pending: imported.pending,
        notes: imported.notes,
    };
    print(&view, args.json, |out, view| {
        let commands = count(view.commands, "command has", "commands have");
        let pending = count(view.pending, "retry is", "retries are");
        writeln!(out, "job {} suspended", view.job)?;
        writeln!(out, "  {commands} used retries or delays, {pending} pending")?;
        writeln!(out, "  resume: undaunted resume {}", view.job)
    })?;
    Ok(Exit::Done)
}

fn read(file: &Path) -> Result<RetryCheckpointState> {
    let name = file.display();
    let text = match file.to_str() {
        Some("-") => io::read_to_string(io::stdin()),
        _ => fs::read_to_string(file),
    };
    let text = text.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CommandError::not_found("no_file", format!("file `{name}` not found")),
        _ => CommandError::Usage(format!("cannot read `{name}`: {error}")),
    })?;
    serde_json::from_str(&text)
        .map_err(|error| CommandError::Invalid(format!("`{name}` is not a retry state: {error}")))
}
