//! `undaunted state`: exports and imports the retry state of a job.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::Job;
use undaunted_engine::state_file::shape::RetryCheckpointState;
use undaunted_engine::state_file::{ExportedPast, export, import};
use undaunted_engine::task::{InputTask, ValueFiles, input_task};
use undaunted_engine::view::ImportedView;
use undaunted_runner::clock::Clock;
use undaunted_runner::{breakers, items_of_file, journal};
use undaunted_store::Version;

use super::run::{plan_file, submit};
use crate::flag_values::whole_number;
use crate::screen::{count, plain, print};
use crate::{CommandError, Exit, Jobs, OpenedJob, Result, StoreUse};

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Debug, Subcommand)]
enum StateCommand {
    /// Print the retry state of a job as JSON
    #[command(after_help = "\
Example:
  undaunted state export @last > retries.json

The object is a `RetryCheckpointState` with the state of unsettled items and dead letters, and the
executions of all items; docs/json.md describes its fields.")]
    Export(StateExportArgs),
    /// Create a suspended job from a workflow and a retry state file
    #[command(after_help = "\
Examples:
  undaunted state import retries.json --workflow nightly.yaml
  undaunted resume @last

Nothing runs until the job is resumed. Pending retries keep their due times, and commands that have
succeeded do not run again. If the file does not fit the workflow, it is refused and nothing is
stored.")]
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
    let mut past = ExportedPast::default();
    opened.reader.each_record(Version::EMPTY, |job, record| past.take(job, record))?;
    opened.reader.load_items(past.items())?;
    let mut out = BufWriter::new(io::stdout().lock());
    let state = export(opened.job(), opened.breakers(), &histories, &past);
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
    let items = known_items(&job);
    let imported = import(&state, &job, items.as_ref());
    let imported = imported.map_err(|error| CommandError::Invalid(format!("{file}: {error}")))?;
    let jobs = Jobs::open(store)?;
    let known = vec![imported.event.clone(), Event::Job(JobEvent::Suspended)];
    journal::deposit(&*jobs.store, submitted, &known, now)?;
    for breaker in &imported.breakers {
        breakers::restore(&*jobs.store, breaker, now)?;
    }
    for note in &imported.notes {
        writeln!(io::stderr(), "note: {}", plain(note))?;
    }
    let view = ImportedView {
        job: job.id().to_owned(),
        status: "suspended",
        commands: imported.commands,
        pending: imported.pending,
        succeeded: imported.succeeded,
        notes: imported.notes,
    };
    print(&view, args.json, |out, view| {
        let commands = count(view.commands, "command has", "commands have");
        let pending = count(view.pending, "retry is", "retries are");
        writeln!(out, "job {} suspended", view.job)?;
        writeln!(out, "  {commands} made attempts, {pending} pending")?;
        if view.succeeded > 0 {
            let succeeded = count(view.succeeded, "command has", "commands have");
            writeln!(out, "  {succeeded} succeeded and will not run again")?;
        }
        writeln!(out, "  resume: undaunted resume {}", view.job)
    })?;
    Ok(Exit::Done)
}

/// The items of the map, if its input is a file that no earlier command can write.
fn known_items(job: &Job) -> Option<BTreeSet<String>> {
    let mut steps = StepId::all().zip(&job.workflow().steps);
    let (step, map) = steps.find_map(|(step, _)| Some((step, job.plan().map(step)?)))?;
    if job.plan().step(step).is_some_and(|step| !step.needs.is_empty()) {
        return None;
    }
    let Ok(Some(InputTask::File(path))) = input_task(job, step, ValueFiles::default()) else {
        return None;
    };
    // An input that cannot be read fails the job later, with its name.
    let read = items_of_file(map, &path, |path| fs::read(path)).ok()?;
    Some(read.items.into_iter().map(|item| item.identity).collect())
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
