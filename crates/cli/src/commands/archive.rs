//! `undaunted archive` and `restore`: jobs that have ended, as files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use undaunted_engine::view::ArchivedView;
use undaunted_runner::archive::{ArchiveError, archive, restore};
use undaunted_runner::clock::Clock;
use undaunted_runner::with_causes;

use crate::flag_values::duration;
use crate::jobs::of_journal;
use crate::screen::{json, plain_lines};
use crate::{CommandError, Exit, Jobs, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted archive 3f9a
  undaunted archive 3f9a 81c2 --to /srv/archive
  undaunted archive --older-than 30d

Moves each ended job to a file, DIR/JOB.undaunted.jsonl, and prints its path. The file contains all
events of the job, but not the output of its commands. `undaunted restore FILE` restores the job.

If `archive` is killed, no job is lost; run it again to finish.")]
pub(crate) struct ArchiveArgs {
    /// Jobs to archive
    #[arg(value_name = "JOB", required_unless_present = "older_than", conflicts_with = "older_than")]
    jobs: Vec<String>,

    /// Write the files to this folder [default: archive, in the folder of the store]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,

    /// Archive all jobs that ended at least this long ago
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    older_than: Option<Duration>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted restore /srv/archive/3f9a5c01d2.undaunted.jsonl
  undaunted restore archive/*.undaunted.jsonl --store /srv/jobs

Each job is restored to the state it had when it was archived, and its file is kept. A truncated or
altered file is refused, and nothing from it is stored. Restoring a job that is already in the store
changes nothing.")]
pub(crate) struct RestoreArgs {
    /// Files written by `undaunted archive`
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &ArchiveArgs) -> Result<Exit> {
    let to = match &args.to {
        Some(to) => std::path::absolute(to)?,
        None => jobs.local.path().join("archive"),
    };
    let wanted = match args.older_than {
        Some(age) => ended_before(jobs, age)?,
        None => named(jobs, &args.jobs)?,
    };
    let catalog = jobs.catalog()?;
    let mut first_error = None;
    for id in &wanted {
        let file = match archive(&*jobs.store, &jobs.local, Some(&catalog), id, &to) {
            // It is archived after the job that waits for it has ended.
            Err(ArchiveError::Awaited { .. }) if args.older_than.is_some() => continue,
            // One failure does not keep the others from being archived.
            Err(error) if args.older_than.is_some() => {
                let refused = of_archive(&error);
                writeln!(io::stderr().lock(), "error: job {id}: {}", plain_lines(&refused.to_string()))?;
                first_error.get_or_insert(refused);
                continue;
            }
            file => file.map_err(|error| of_archive(&error))?,
        };
        let text = file.display().to_string();
        print(id, &file, &text, args.json)?;
    }
    if wanted.is_empty() && !args.json {
        writeln!(io::stdout().lock(), "no jobs ended that long ago")?;
    }
    match first_error {
        Some(refused) => Err(refused),
        None => Ok(Exit::Done),
    }
}

pub(crate) fn restore_files(jobs: &Jobs, args: &RestoreArgs) -> Result<Exit> {
    let catalog = jobs.catalog()?;
    for file in &args.files {
        let id = restore(&*jobs.store, Some(&catalog), file).map_err(|error| of_archive(&error))?;
        print(&id, file, &format!("job {id} restored"), args.json)?;
    }
    Ok(Exit::Done)
}

fn print(id: &str, file: &Path, text: &str, as_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if as_json {
        json(&mut out, &ArchivedView { job: id.to_owned(), file: file.display().to_string() })
    } else {
        writeln!(out, "{text}")
    }
}

/// The jobs with these names. None is archived if one of them has not ended.
fn named(jobs: &Jobs, names: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in names {
        let id = jobs.find(name)?;
        if !jobs.read(&id)?.stage.has_ended() {
            return Err(of_archive(&ArchiveError::NotEnded { job: id }));
        }
        if !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(found)
}

/// The jobs that ended at least this long ago.
pub(crate) fn ended_before(jobs: &Jobs, age: Duration) -> Result<Vec<String>> {
    let mut found = jobs.list("")?;
    found.retain(|listed| has_ended_before(jobs, listed.aggregate.id(), age));
    Ok(found.iter().map(|listed| listed.aggregate.id().to_owned()).collect())
}

/// A job that cannot be read may not have ended.
pub(crate) fn has_ended_before(jobs: &Jobs, id: &str, age: Duration) -> bool {
    let now = Clock::set().now();
    jobs.read(id).is_ok_and(|job| job.stage.has_ended() && now.since(job.times.last_at) >= age)
}

fn of_archive(error: &ArchiveError) -> CommandError {
    match error {
        ArchiveError::NotEnded { job } => {
            CommandError::Usage(format!("{error}; cancel it with `undaunted cancel {job}`"))
        }
        ArchiveError::Awaited { .. } => CommandError::Usage(error.to_string()),
        ArchiveError::InTheWay { .. } => {
            CommandError::Usage(format!("{error}; choose another folder with --to"))
        }
        ArchiveError::Exists { job } => {
            CommandError::Usage(format!("{error}; move it away with `undaunted archive {job} --to DIR`"))
        }
        ArchiveError::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
            CommandError::not_found("no_file", format!("file `{}` not found", path.display()))
        }
        ArchiveError::Journal(error) => of_journal(error),
        ArchiveError::Io { .. } => CommandError::Store { message: with_causes(error), help: None },
        _ => CommandError::Invalid(error.to_string()),
    }
}
