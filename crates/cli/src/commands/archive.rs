//! `undaunted archive` and `restore`: jobs that have ended, as files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use undaunted_engine::view::ArchivedView;
use undaunted_policy::spelling::parse_duration;
use undaunted_runner::archive::{ArchiveError, archive, restore};
use undaunted_runner::clock::Clock;
use undaunted_runner::with_causes;

use crate::exit::{CommandError, Exit};
use crate::jobs::{Jobs, of_journal};
use crate::screen::json;

/// The jobs to move to files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted archive 3f9a
  undaunted archive 3f9a 81c2 --to /srv/archive
  undaunted archive --older-than 30d

A job that has ended becomes one file, DIR/JOB.undaunted.jsonl, and leaves the store; the file is
printed. It holds everything that has happened to the job; what its commands wrote, which
`undaunted logs` shows, goes. `undaunted restore FILE` brings the job back.

Whoever is killed in between leaves the job, the file or both; typing it again finishes.")]
pub(crate) struct ArchiveArgs {
    /// The jobs
    #[arg(value_name = "JOB", required_unless_present = "older_than", conflicts_with = "older_than")]
    jobs: Vec<String>,

    /// The folder of the files [default: archive, in the folder of the store]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,

    /// All jobs that ended so long ago, at least
    #[arg(long, value_name = "DURATION")]
    older_than: Option<String>,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// The files to bring back.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted restore /srv/archive/3f9a5c01d2.undaunted.jsonl
  undaunted restore archive/*.undaunted.jsonl --store /srv/jobs

The job stands in the store as it did when it was archived, and the file stays where it is. A file
that was cut or altered is refused, and nothing of it is stored. Restoring what is there already
changes nothing.")]
pub(crate) struct RestoreArgs {
    /// The files that `undaunted archive` wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &ArchiveArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let to = match &args.to {
        Some(to) => std::path::absolute(to)?,
        None => jobs.local.path().join("archive"),
    };
    let wanted = match &args.older_than {
        Some(older) => old(&jobs, older)?,
        None => named(&jobs, &args.jobs)?,
    };
    let book = jobs.book()?;
    let mut trouble = None;
    for id in &wanted {
        let file = match archive(&*jobs.store, &jobs.local, Some(&book), id, &to) {
            // It is archived once the job that awaits it has ended.
            Err(ArchiveError::Awaited { .. }) if args.older_than.is_some() => continue,
            // One failure does not keep the others from being archived.
            Err(error) if args.older_than.is_some() => {
                let refused = of_archive(&error);
                writeln!(io::stderr().lock(), "error: job {id}: {refused}")?;
                trouble.get_or_insert(refused);
                continue;
            }
            file => file.map_err(|error| of_archive(&error))?,
        };
        let mut out = io::stdout().lock();
        if args.json {
            let (job, file) = (id.clone(), file.display().to_string());
            json(&mut out, &ArchivedView { job, file })?;
        } else {
            writeln!(out, "{}", file.display())?;
        }
    }
    if wanted.is_empty() && !args.json {
        writeln!(io::stdout().lock(), "no job ended that long ago")?;
    }
    match trouble {
        Some(refused) => Err(refused.into()),
        None => Ok(Exit::Done),
    }
}

pub(crate) fn bring_back(store: Option<&Path>, args: &RestoreArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let book = jobs.book()?;
    for file in &args.files {
        let id = restore(&*jobs.store, Some(&book), file).map_err(|error| of_archive(&error))?;
        let mut out = io::stdout().lock();
        if args.json {
            let (job, file) = (id.clone(), file.display().to_string());
            json(&mut out, &ArchivedView { job, file })?;
        } else {
            writeln!(out, "job {id} restored")?;
        }
    }
    Ok(Exit::Done)
}

/// The jobs by these names. None is archived if one has not ended.
fn named(jobs: &Jobs, names: &[String]) -> Result<Vec<String>, CommandError> {
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

fn old(jobs: &Jobs, older: &str) -> Result<Vec<String>, CommandError> {
    let older: Duration =
        parse_duration(older).map_err(|error| CommandError::Usage(format!("--older-than: {error}")))?;
    let now = Clock::set().now();
    let mut found = Vec::new();
    for listed in jobs.list("")? {
        let id = listed.aggregate.id();
        // A job that cannot be read may not have ended.
        let Ok(job) = jobs.read(id) else { continue };
        if job.stage.has_ended() && now.since(job.times.last_at) >= older {
            found.push(id.to_owned());
        }
    }
    Ok(found)
}

fn of_archive(error: &ArchiveError) -> CommandError {
    match error {
        ArchiveError::NotEnded { job } => {
            CommandError::Usage(format!("{error}; `undaunted cancel {job}` ends it"))
        }
        ArchiveError::Awaited { .. } => CommandError::Usage(error.to_string()),
        ArchiveError::InTheWay { .. } => {
            CommandError::Usage(format!("{error}; name another folder with --to"))
        }
        ArchiveError::Exists { job } => {
            CommandError::Usage(format!("{error}; `undaunted archive {job} --to DIR` makes room for it"))
        }
        ArchiveError::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
            CommandError::not_found("no_file", format!("there is no file `{}`", path.display()))
        }
        ArchiveError::Journal(error) => of_journal(error),
        ArchiveError::Io { .. } => CommandError::Store { message: with_causes(error), help: None },
        _ => CommandError::Invalid(error.to_string()),
    }
}
