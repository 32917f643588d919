//! `undaunted store`: the folder that jobs are kept in.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};
use undaunted_engine::job::Job;
use undaunted_engine::law;
use undaunted_runner::{breakers, catalog, journal};
use undaunted_store::Version;

use crate::exit::{Exit, Refused};
use crate::jobs::{Jobs, of_journal, of_store};
use crate::screen::{count, plain};

/// What to do with the store.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    what: What,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Read every record of every job, and ask every law about them
    Check,
    /// Give the room of removed jobs back to the disk
    Compact,
    /// Print where it is
    Path,
}

pub(crate) fn run(store: Option<&Path>, args: &StoreArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    match args.what {
        What::Check => check(&jobs, args.json),
        What::Compact => {
            let [before, after] = jobs.store.compact().map_err(|error| of_store(&error))?;
            let mut out = io::stdout().lock();
            if args.json {
                let said = serde_json::json!({ "bytes_before": before, "bytes_after": after });
                writeln!(out, "{said}")?;
            } else {
                writeln!(out, "{before} bytes before, {after} after")?;
            }
            Ok(Exit::Done)
        }
        What::Path => {
            let mut out = io::stdout().lock();
            if args.json {
                let path = jobs.location.to_string();
                writeln!(out, "{}", serde_json::json!({ "path": path }))?;
            } else {
                writeln!(out, "{}", jobs.location)?;
            }
            Ok(Exit::Done)
        }
    }
}

fn check(jobs: &Jobs, json: bool) -> Result<Exit> {
    let mut out = io::stdout().lock();
    let (mut number, mut records, mut wrong) = (0_usize, 0_u64, 0_usize);
    for listed in jobs.list("")? {
        let id = listed.aggregate.id();
        number = number.saturating_add(1);
        records = records.saturating_add(listed.head.version.0);
        let found = match check_job(jobs, id) {
            Ok(found) => found,
            Err(refused) => vec![refused.to_string()],
        };
        for what in found {
            wrong = wrong.saturating_add(1);
            if json {
                writeln!(out, "{}", serde_json::json!({ "job": id, "problem": what }))?;
            } else {
                writeln!(out, "job {id}: {what}")?;
            }
        }
    }
    for listed in breakers::names(&*jobs.store).map_err(|error| of_journal(&error))? {
        if let Err(error) = breakers::records(&*jobs.store, &listed, Version::default()) {
            wrong = wrong.saturating_add(1);
            if json {
                let problem = error.to_string();
                let said = serde_json::json!({ "breaker": listed, "problem": problem });
                writeln!(out, "{said}")?;
            } else {
                writeln!(out, "breaker {}: {error}", plain(&listed))?;
            }
        }
    }
    if let Err(error) = catalog::records(&*jobs.store, Version::default()) {
        wrong = wrong.saturating_add(1);
        if json {
            let problem = error.to_string();
            writeln!(
                out,
                "{}",
                serde_json::json!({ "catalog": true, "problem": problem })
            )?;
        } else {
            writeln!(out, "catalog: {error}")?;
        }
    }
    if json {
        let said = serde_json::json!({ "jobs": number, "records": records, "problems": wrong });
        writeln!(out, "{said}")?;
    } else {
        let jobs = count(number, "job", "jobs");
        let problems = count(wrong, "problem", "problems");
        writeln!(out, "{jobs}, {records} records, {problems}")?;
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
}

fn check_job(jobs: &Jobs, id: &str) -> Result<Vec<String>, Refused> {
    let aggregate = journal::aggregate(id).map_err(|error| of_journal(&error))?;
    let records = jobs.store.read(&aggregate, Version::default());
    let mut job: Option<Job> = None;
    let mut found = Vec::new();
    for read in records.map_err(|error| of_store(&error))? {
        let (version, bytes) = read.map_err(|error| of_store(&error))?;
        let record = journal::decode(id, version, &bytes).map_err(|error| of_journal(&error))?;
        let Some(job) = &mut job else {
            job = Some(Job::begin(&record).map_err(|why| {
                let job = id.to_owned();
                of_journal(&journal::JournalError::Job { job, why })
            })?);
            continue;
        };
        let broken = law::broken_by(job, &record);
        found.extend(
            broken
                .iter()
                .map(|it| format!("record {version}: {}", it.law)),
        );
        job.apply(&record);
    }
    let broken = job.as_ref().map(law::broken_in).unwrap_or_default();
    found.extend(broken.iter().map(|it| format!("{}: {}", it.law, it.what)));
    Ok(found)
}
