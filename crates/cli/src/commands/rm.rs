//! `undaunted rm` and `prune`: removing jobs.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use undaunted_engine::catalog::CatalogEvent;
use undaunted_engine::input::Input;
use undaunted_engine::task::shorten_name;
use undaunted_engine::view::RemovedView;
use undaunted_runner::drive::{EventLoop, NoJobObserver};
use undaunted_runner::journal;
use undaunted_runner::secrets::Secrets;

use crate::commands::archive::{ended_before, has_ended_before};
use crate::flag_values::duration;
use crate::jobs::of_drive;
use crate::screen::{count, json};
use crate::{CommandError, Confirmation, Exit, Jobs, Result, StoreUse};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted rm 3f9a
  undaunted rm 3f9a 81c2 --yes
  undaunted rm 3f9a --force

Removes the journal and the output of each job. Asks for confirmation on a terminal; elsewhere --yes
is required. An unfinished job is removed only with --force, and never while a process is running
it.")]
pub(crate) struct RmArgs {
    /// Jobs to remove
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,

    /// Also remove unfinished jobs
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    confirmation: Confirmation,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted prune --older-than 30d
  undaunted prune --older-than 1h --dry-run
  undaunted prune --older-than 30d --yes

Asks for confirmation on a terminal; elsewhere --yes is required. Unfinished jobs are never removed.")]
pub(crate) struct PruneArgs {
    /// Remove jobs that ended at least this long ago
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    older_than: Duration,

    /// List the jobs without removing them
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    confirmation: Confirmation,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl PruneArgs {
    pub(crate) const fn store_use(&self) -> StoreUse {
        if self.dry_run { StoreUse::Read } else { StoreUse::Remove }
    }
}

pub(crate) fn rm(jobs: &Jobs, args: &RmArgs) -> Result<Exit> {
    args.confirmation.require("undaunted rm")?;
    let found = args.jobs.iter().map(|it| jobs.find(it)).collect::<Result<Vec<String>>>()?;
    for id in &found {
        let job = jobs.read(id)?;
        if !job.stage.has_ended() && !args.force {
            return Err(CommandError::Usage(format!(
                "job {id} is not finished; remove it anyway with `--force`"
            )));
        }
    }
    args.confirmation.ask(&format!("remove {}", count(found.len(), "job", "jobs")))?;
    for id in found {
        remove(jobs, &id)?;
        report(&id, args.json, true)?;
    }
    Ok(Exit::Done)
}

pub(crate) fn prune(jobs: &Jobs, args: &PruneArgs) -> Result<Exit> {
    if !args.dry_run {
        args.confirmation.require("undaunted prune")?;
    }
    let ended = ended_before(jobs, args.older_than)?;
    if !args.dry_run && !ended.is_empty() {
        args.confirmation.ask(&format!("remove {}", count(ended.len(), "job", "jobs")))?;
    }
    for id in &ended {
        if !args.dry_run {
            // A redrive may have begun since; or the job was removed with the flow whose item started it.
            if !has_ended_before(jobs, id, args.older_than) {
                continue;
            }
            remove(jobs, id)?;
        }
        report(id, args.json, !args.dry_run)?;
    }
    if ended.is_empty() && !args.json {
        writeln!(io::stdout().lock(), "no jobs ended that long ago")?;
    }
    Ok(Exit::Done)
}

fn report(id: &str, as_json: bool, removed: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if as_json {
        return json(&mut out, &RemovedView { job: id.to_owned(), removed });
    }
    writeln!(out, "job {id} {}", if removed { "removed" } else { "would be removed" })
}

fn remove(jobs: &Jobs, id: &str) -> Result<()> {
    let claim = || journal::claim(&*jobs.store, id, &jobs.plans);
    let mut claimed = claim()?;
    if !claimed.job.stage.has_ended() {
        // Otherwise its commands would keep running without an owner.
        claimed.first = Some(Input::Cancel);
        let services = jobs.services()?;
        let ended = EventLoop::new(&services).run(claimed, Secrets::default(), Box::new(NoJobObserver));
        ended.map_err(|error| of_drive(&error, id))?;
        claimed = claim()?;
    }
    // The folder first: a journal without a folder can be removed again, a folder alone is litter.
    let folder = jobs.local.job(id);
    folder.remove().map_err(|error| CommandError::Store {
        message: format!("cannot remove `{}`: {error}", folder.path().display()),
        help: None,
    })?;
    journal::remove(&*jobs.store, &claimed)?;
    // Flows started by its items.
    while let Some(part) = jobs.list(&format!("{}:", shorten_name(id)))?.first() {
        remove(jobs, part.aggregate.id())?;
    }
    if claimed.job.workflow().flow.is_some() {
        // If this is not written, the next server finds the flow missing and records it.
        let flow = claimed.job.id().to_owned();
        jobs.catalog()?.note(CatalogEvent::FlowRemoved { flow });
    }
    Ok(())
}
