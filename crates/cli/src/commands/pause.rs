//! `undaunted pause` and `unpause`: a job starts nothing new for a while.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use undaunted_engine::view::PausedView;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal::{self, JournalError};
use undaunted_runner::request::{JobRequest, ask};
use undaunted_store::ClaimError;

use crate::exit::{CommandError, Exit};
use crate::jobs::Jobs;
use crate::screen::json;

/// The job to pause, or to let go on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted pause @last
  undaunted unpause @last

What runs finishes, what waits keeps its time, and the time of items stands still. A paused
job is still a job that somebody runs; Ctrl-C suspends it.")]
pub(crate) struct PauseArgs {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &PauseArgs, request: JobRequest) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let id = jobs.find(&args.job)?;
    let (paused, owner) = match journal::claim(&*jobs.store, &id, &jobs.plans) {
        Ok(held) if held.job.stage.has_ended() => {
            return Err(CommandError::Usage(format!("job {id} has ended")).into());
        }
        Ok(held) => {
            let now = Clock::set().now();
            let told = journal::tell(&*jobs.store, held, &request.input(), now);
            let job = told.map_err(CommandError::from)?;
            (job.times.paused.is_some(), None)
        }
        Err(JournalError::Claim(ClaimError::OwnedBy { owner, .. })) => {
            ask(&*jobs.store, &id, request).map_err(CommandError::from)?;
            (request == JobRequest::Pause, Some(owner.pid))
        }
        Err(error) => return Err(CommandError::from(error).into()),
    };
    let mut out = io::stdout().lock();
    if args.json {
        let job = id;
        json(&mut out, &PausedView { job, paused, owner })?;
        return Ok(Exit::Done);
    }
    let state = if paused { "paused" } else { "no longer paused" };
    match owner {
        Some(pid) => writeln!(out, "job {id} is {state}: process {pid}, which runs it, was asked")?,
        None => writeln!(out, "job {id} is {state}; go on:  undaunted resume {id}")?,
    }
    Ok(Exit::Done)
}
