//! `undaunted cancel`: ending a job before its time.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use undaunted_engine::input::Input;
use undaunted_engine::view::CancelRequestView;
use undaunted_runner::drive::{EventLoop, NoJobObserver};
use undaunted_runner::journal::{self, JournalError};
use undaunted_runner::request::{JobRequest, ask};
use undaunted_runner::secrets::Secrets;
use undaunted_store::ClaimError;

use crate::commands::run::tell;
use crate::exit::{CommandError, Exit};
use crate::jobs::{Jobs, of_drive};
use crate::screen::json;

/// The job to end.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  undaunted cancel @last

What runs is ended (TERM, then KILL), what waits is skipped, and no handler runs. If another
process runs the job, it is asked to.")]
pub(crate) struct CancelArgs {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,

    /// Print one JSON object with what the job came to
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &CancelArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let id = jobs.find(&args.job)?;
    let mut held = match journal::claim(&*jobs.store, &id, &jobs.plans) {
        Ok(held) => held,
        Err(JournalError::Claim(ClaimError::OwnedBy { owner, .. })) => {
            ask(&*jobs.store, &id, JobRequest::Cancel).map_err(CommandError::from)?;
            let mut out = io::stdout().lock();
            if args.json {
                let asked = CancelRequestView { job: id, requested: true, owner: owner.pid };
                json(&mut out, &asked)?;
            } else {
                writeln!(
                    out,
                    "job {id} is being run by process {} on {}, which was asked to cancel it",
                    owner.pid, owner.host
                )?;
            }
            return Ok(Exit::Done);
        }
        Err(error) => return Err(CommandError::from(error).into()),
    };
    if held.job.stage.has_ended() {
        tell(&held.job, args.json)?;
        return Ok(Exit::Done);
    }
    let world = jobs.world()?;
    held.first = Some(Input::Cancel);
    // Nothing starts, so no command needs a secret; but what a command wrote must still be redacted.
    let directory = Path::new(&held.job.submitted().working_dir);
    let secrets = Secrets::read(held.job.workflow(), directory);
    let secrets = secrets.unwrap_or_else(|_| Secrets::withheld());
    let ended = EventLoop::new(&world).run(held, secrets, Box::new(NoJobObserver));
    let job = ended.map_err(|error| of_drive(&error, &id))?;
    tell(&job, args.json)?;
    Ok(Exit::Done)
}
