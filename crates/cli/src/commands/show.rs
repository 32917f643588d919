//! `undaunted show`: how a job stands.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use undaunted_runner::clock::Clock;

use crate::exit::Exit;
use crate::jobs::Jobs;
use crate::screen::job;

/// The job to show.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted show @last
  undaunted show 3f9a --json")]
pub(crate) struct ShowArgs {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &ShowArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let id = jobs.find(&args.job)?;
    let (found, owner) = (jobs.read(&id)?, jobs.owner(&id)?);
    let mut out = BufWriter::new(io::stdout().lock());
    let now = Clock::set().now();
    if args.json {
        job::json(&mut out, &found, owner.as_ref(), now)?;
    } else {
        job::show(&mut out, &found, owner.as_ref(), now)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
