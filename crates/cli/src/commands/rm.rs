//! `undaunted rm` and `prune`: removing jobs.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use undaunted_engine::catalog::CatalogEvent;
use undaunted_engine::input::Input;
use undaunted_engine::task::short;
use undaunted_engine::view::RemovedView;
use undaunted_policy::spelling::parse_duration;
use undaunted_runner::clock::Clock;
use undaunted_runner::drive::{EventLoop, NoJobObserver};
use undaunted_runner::journal;
use undaunted_runner::secrets::Secrets;

use crate::exit::{CommandError, Exit};
use crate::jobs::{Jobs, of_drive};
use crate::screen::{count, json as print_json};

/// The jobs to remove.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted rm 3f9a
  undaunted rm 3f9a 81c2 --yes
  undaunted rm 3f9a --force

The journal goes, and everything its commands wrote. On a terminal it asks first. A job that
is not finished is removed only with --force, and never while somebody runs it.")]
pub(crate) struct RmArgs {
    /// The jobs
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,

    /// Remove jobs that are not finished, too
    #[arg(long)]
    force: bool,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Which jobs to remove.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted prune --older-than 30d
  undaunted prune --older-than 1h --dry-run

Only jobs that have ended go, by the time of their end; never what is unfinished.")]
pub(crate) struct PruneArgs {
    /// How long ago they ended, at least
    #[arg(long, value_name = "DURATION")]
    older_than: String,

    /// Only say which
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn rm(store: Option<&Path>, args: &RmArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let found = args.jobs.iter().map(|it| jobs.find(it));
    let found = found.collect::<Result<Vec<String>, CommandError>>()?;
    for id in &found {
        let job = jobs.read(id)?;
        if !job.stage.has_ended() && !args.force {
            return Err(CommandError::Usage(format!(
                "job {id} is not finished; `--force` removes it all the same"
            ))
            .into());
        }
    }
    if !args.yes && !confirmed(&format!("remove {}", count(found.len(), "job", "jobs")))? {
        return Ok(Exit::Done);
    }
    for id in found {
        remove(&jobs, &id)?;
        say(&id, args.json, "removed")?;
    }
    Ok(Exit::Done)
}

pub(crate) fn prune(store: Option<&Path>, args: &PruneArgs) -> Result<Exit> {
    let older: Duration = parse_duration(&args.older_than)
        .map_err(|error| CommandError::Usage(format!("--older-than: {error}")))?;
    let jobs = Jobs::open(store)?;
    let now = Clock::set().now();
    let mut number = 0_usize;
    for listed in jobs.list("")? {
        let id = listed.aggregate.id();
        // A job that cannot be read may not have ended.
        let Ok(job) = jobs.read(id) else { continue };
        if !job.stage.has_ended() || now.since(job.times.last_at) < older {
            continue;
        }
        number = number.saturating_add(1);
        if args.dry_run {
            say(id, args.json, "would be removed")?;
        } else {
            remove(&jobs, id)?;
            say(id, args.json, "removed")?;
        }
    }
    if number == 0 && !args.json {
        let mut out = io::stdout().lock();
        writeln!(out, "no job ended that long ago")?;
    }
    Ok(Exit::Done)
}

fn say(id: &str, json: bool, what: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if json {
        let removed = what == "removed";
        let job = id.to_owned();
        print_json(&mut out, &RemovedView { job, removed })
    } else {
        writeln!(out, "job {id} {what}")
    }
}

fn remove(jobs: &Jobs, id: &str) -> Result<(), CommandError> {
    let claim = || journal::claim(&*jobs.store, id, &jobs.plans);
    let mut held = claim()?;
    if !held.job.stage.has_ended() {
        // Otherwise its commands would keep running, and no process would know them.
        held.first = Some(Input::Cancel);
        let world = jobs.world()?;
        let ended = EventLoop::new(&world).run(held, Secrets::withheld(), Box::new(NoJobObserver));
        ended.map_err(|error| of_drive(&error, id))?;
        held = claim()?;
    }
    // The folder first: a journal without a folder can be removed again, a folder alone is litter.
    let folder = jobs.local.job(id);
    folder.remove().map_err(|error| CommandError::Store {
        message: format!("`{}` cannot be removed: {error}", folder.path().display()),
        help: None,
    })?;
    journal::remove(&*jobs.store, &held)?;
    // Flows that its items have started.
    while let Some(part) = jobs.list(&format!("{}:", short(id)))?.first() {
        remove(jobs, part.aggregate.id())?;
    }
    if held.job.workflow().flow.is_some() {
        // If this is not written, the next server notices that the flow is gone.
        let flow = held.job.id().to_owned();
        jobs.book()?.note(CatalogEvent::FlowRemoved { flow });
    }
    Ok(())
}

/// Asks on a terminal; elsewhere the answer is yes, since there is no one to ask.
pub(crate) fn confirmed(what: &str) -> io::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let mut ask = io::stderr().lock();
    write!(ask, "{what}? [y/N] ")?;
    ask.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
