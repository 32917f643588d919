//! `undaunted store`: the folder that jobs are kept in.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use undaunted_engine::job::Job;
use undaunted_engine::law;
use undaunted_runner::{breakers, catalog, journal};
use undaunted_store::Version;

use crate::exit::{Exit, Refused};
use crate::jobs::Jobs;
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
            let [before, after] = jobs.store.compact().map_err(Refused::from)?;
            let mut out = io::stdout().lock();
            if args.json {
                let said = json!({ "bytes_before": before, "bytes_after": after });
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
                writeln!(out, "{}", json!({ "path": path }))?;
            } else {
                writeln!(out, "{}", jobs.location)?;
            }
            Ok(Exit::Done)
        }
    }
}

fn check(jobs: &Jobs, as_json: bool) -> Result<Exit> {
    let mut out = io::stdout().lock();
    let (mut number, mut records, mut wrong) = (0_usize, 0_u64, 0_usize);
    let mut problem = |machine: Value, person: String| {
        wrong = wrong.saturating_add(1);
        if as_json {
            writeln!(out, "{machine}")
        } else {
            writeln!(out, "{person}")
        }
    };
    for listed in jobs.list("")? {
        let id = listed.aggregate.id();
        number = number.saturating_add(1);
        records = records.saturating_add(listed.head.version.0);
        let found = check_job(jobs, id).unwrap_or_else(|refused| vec![refused.to_string()]);
        for what in found {
            problem(
                json!({ "job": id, "problem": what }),
                format!("job {id}: {what}"),
            )?;
        }
    }
    for listed in breakers::names(&*jobs.store).map_err(Refused::from)? {
        if let Err(error) = breakers::records(&*jobs.store, &listed, Version::default()) {
            problem(
                json!({ "breaker": listed, "problem": error.to_string() }),
                format!("breaker {}: {error}", plain(&listed)),
            )?;
        }
    }
    if let Err(error) = catalog::records(&*jobs.store, Version::default()) {
        problem(
            json!({ "catalog": true, "problem": error.to_string() }),
            format!("catalog: {error}"),
        )?;
    }
    if as_json {
        let said = json!({ "jobs": number, "records": records, "problems": wrong });
        writeln!(out, "{said}")?;
    } else {
        let jobs = count(number, "job", "jobs");
        let problems = count(wrong, "problem", "problems");
        writeln!(out, "{jobs}, {records} records, {problems}")?;
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
}

fn check_job(jobs: &Jobs, id: &str) -> Result<Vec<String>, Refused> {
    let aggregate = journal::aggregate(id)?;
    let mut job: Option<Job> = None;
    let mut found = Vec::new();
    for read in jobs.store.read(&aggregate, Version::default())? {
        let (version, bytes) = read?;
        let record = journal::decode(id, version, &bytes)?;
        let Some(job) = &mut job else {
            job = Some(Job::begin(&record).map_err(|why| {
                let job = id.to_owned();
                journal::JournalError::Job { job, why }
            })?);
            continue;
        };
        let broken = law::broken_by(job, &record);
        let broken = broken.iter();
        found.extend(broken.map(|it| format!("record {version}: {}", it.law)));
        job.apply(&record);
    }
    let broken = job.as_ref().map(law::broken_in).unwrap_or_default();
    found.extend(broken.iter().map(|it| format!("{}: {}", it.law, it.what)));
    Ok(found)
}
