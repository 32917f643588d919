//! `undaunted show`: the status of a job.

use std::env;
use std::io::{self, IsTerminal};

use clap::Args;

use crate::screen::job::{self, JobLayout};
use crate::screen::{print, resumes, wants_colour};
use crate::{Exit, Jobs, OpenedJob, Result};

/// The width if it is unknown.
const COLUMNS: usize = 80;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted show @last
  undaunted show 3f9a --resumes
  undaunted show 3f9a --json")]
pub(crate) struct ShowArgs {
    /// Id of the job, a unique prefix, or @last
    job: String,

    /// Show each resume: downtime, recovered state, attempts
    #[arg(long)]
    resumes: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &ShowArgs) -> Result<Exit> {
    let id = jobs.find(&args.job)?;
    let mut opened = OpenedJob::open(jobs, &id)?;
    if args.resumes {
        print(&opened.resumes(), args.json, resumes::show)?;
        return Ok(Exit::Done);
    }
    let now = opened.now();
    print(&opened.view()?, args.json, |out, view| {
        let (columns, colour) = (columns(), wants_colour(&io::stdout()));
        job::show(out, view, &JobLayout { now, columns, colour })
    })?;
    Ok(Exit::Done)
}

fn columns() -> usize {
    let variable = env::var("COLUMNS").ok().and_then(|it| it.parse().ok());
    let out = io::stdout();
    let terminal = || {
        let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out));
        Some(usize::from(size?.ok()?.ws_col))
    };
    variable.or_else(terminal).filter(|wide| *wide > 0).unwrap_or(COLUMNS)
}
