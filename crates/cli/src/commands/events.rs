//! `undaunted events`: everything that has happened to a job.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use undaunted_engine::job::Job;
use undaunted_engine::view;
use undaunted_runner::journal;
use undaunted_store::{Store, Version};

use crate::exit::Exit;
use crate::jobs::{Jobs, of_journal, of_store};
use crate::screen::events;

/// How often to look for more.
const LOOK: Duration = Duration::from_millis(100);

/// Whose events to print.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted events @last
  undaunted events 3f9a --json | jq 'select(.type == \"retry_scheduled\")'
  undaunted events @last --follow")]
pub(crate) struct EventsArgs {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,

    /// Go on printing until the job has ended
    #[arg(long)]
    follow: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &EventsArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let id = jobs.find(&args.job)?;
    let aggregate = journal::aggregate(&id).map_err(|error| of_journal(&error))?;
    let mut job: Option<Job> = None;
    let mut seen = Version::default();
    let mut pulse = None;
    loop {
        let now = jobs.store.pulse().map_err(|error| of_store(&error))?;
        if pulse != Some(now) {
            pulse = Some(now);
            let mut out = BufWriter::new(io::stdout().lock());
            let records = jobs.store.read(&aggregate, seen);
            for read in records.map_err(|error| of_store(&error))? {
                // What is before a damaged record is printed, and then it is said.
                let shown = read.map_err(|error| of_store(&error)).and_then(|read| {
                    let record = journal::decode(&id, read.0, &read.1);
                    record
                        .map(|record| (read.0, record))
                        .map_err(|error| of_journal(&error))
                });
                let (version, record) = match shown {
                    Ok(shown) => shown,
                    Err(refused) => {
                        out.flush()?;
                        return Err(refused.into());
                    }
                };
                seen = version;
                let job = match &mut job {
                    Some(job) => {
                        job.apply(&record);
                        job
                    }
                    None => job.insert(Job::begin(&record).map_err(|why| {
                        let job = id.clone();
                        of_journal(&journal::JournalError::Job { job, why })
                    })?),
                };
                let event = view::event(job, version.0, &record);
                if args.json {
                    serde_json::to_writer(&mut out, &event)?;
                    writeln!(out)?;
                } else {
                    events::line(&mut out, &event)?;
                }
            }
            out.flush()?;
        }
        let ended = job.as_ref().is_none_or(|job| job.stage.has_ended());
        if !args.follow || ended {
            return Ok(Exit::Done);
        }
        std::thread::sleep(LOOK);
    }
}
