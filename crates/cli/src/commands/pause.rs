//! `undaunted pause` and `unpause`: stop and allow new starts in a job.

use std::io::Write;

use clap::Args;
use undaunted_engine::view::PausedView;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal;
use undaunted_runner::request::JobRequest;

use crate::screen::print;
use crate::{ClaimOrOwner, CommandError, Exit, Jobs, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted pause @last
  undaunted unpause @last

Running commands finish, waiting retries keep their due times, and the deadlines of items do not
advance. A paused job still occupies its process; Ctrl-C suspends it.")]
pub(crate) struct PauseArgs {
    /// Id of the job, a unique prefix, or @last
    job: String,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &PauseArgs, request: JobRequest) -> Result<Exit> {
    let id = jobs.find(&args.job)?;
    let (paused, owner) = match jobs.claim_or_ask(&id, request)? {
        ClaimOrOwner::Claimed(claimed) if claimed.job.stage.has_ended() => {
            return Err(CommandError::Usage(format!("job {id} has ended")));
        }
        ClaimOrOwner::Claimed(claimed) => {
            let job = journal::record_input(&*jobs.store, *claimed, &request.input(), Clock::set().now());
            (job?.times.paused.is_some(), None)
        }
        ClaimOrOwner::Owner(owner) => (request == JobRequest::Pause, Some(owner.pid)),
    };
    let view = PausedView { job: id.clone(), paused, owner };
    print(&view, args.json, |out, _| {
        let verb = if paused { "pause" } else { "unpause" };
        match owner {
            Some(pid) => writeln!(out, "asked process {pid}, which is running job {id}, to {verb} it"),
            None => writeln!(out, "job {id} {verb}d; resume it with `undaunted resume {id}`"),
        }
    })?;
    Ok(Exit::Done)
}
