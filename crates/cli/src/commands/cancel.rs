//! `undaunted cancel`: ends a job early.

use std::io::Write;
use std::path::Path;

use clap::Args;
use undaunted_engine::input::Input;
use undaunted_engine::view::CancelRequestView;
use undaunted_runner::drive::{EventLoop, NoJobObserver};
use undaunted_runner::request::JobRequest;
use undaunted_runner::secrets::Secrets;

use crate::commands::run::print_report;
use crate::jobs::of_drive;
use crate::screen::print;
use crate::{ClaimOrOwner, Exit, Jobs, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  undaunted cancel @last

Running commands are stopped (TERM, then KILL), waiting items are skipped, and no handler runs. If
another process is running the job, it is asked to cancel it.")]
pub(crate) struct CancelArgs {
    /// Id of the job, a unique prefix, or @last
    job: String,

    /// Print the report of the job as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &CancelArgs) -> Result<Exit> {
    let id = jobs.find(&args.job)?;
    let mut claimed = match jobs.claim_or_ask(&id, JobRequest::Cancel)? {
        ClaimOrOwner::Claimed(claimed) => *claimed,
        ClaimOrOwner::Owner(owner) => {
            let view = CancelRequestView { job: id.clone(), requested: true, owner: owner.pid };
            print(&view, args.json, |out, _| {
                writeln!(
                    out,
                    "asked process {} on {}, which is running job {id}, to cancel it",
                    owner.pid, owner.host
                )
            })?;
            return Ok(Exit::Done);
        }
    };
    if claimed.job.stage.has_ended() {
        print_report(&claimed.job, args.json)?;
        return Ok(Exit::Done);
    }
    let services = jobs.services()?;
    claimed.first = Some(Input::Cancel);
    // Nothing starts, so no command needs a secret; a result that arrives now is redacted if they can be read.
    let directory = Path::new(&claimed.job.submitted().working_dir);
    let secrets = Secrets::read(claimed.job.workflow(), directory).unwrap_or_default();
    let ended = EventLoop::new(&services).run(claimed, secrets, Box::new(NoJobObserver));
    let job = ended.map_err(|error| of_drive(&error, &id))?;
    print_report(&job, args.json)?;
    Ok(Exit::Done)
}
