//! `undaunted store`: checks, compacts and locates the store.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use undaunted_engine::job::Job;
use undaunted_engine::law;
use undaunted_runner::{breakers, catalog, journal};
use undaunted_store::Version;

use crate::exit::{CommandError, Exit};
use crate::jobs::Jobs;
use crate::screen::{count, json, plain};

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: UpkeepCommand,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum UpkeepCommand {
    /// Read all records and check their consistency
    Check,
    /// Return the space of removed jobs to the disk
    Compact,
    /// Print the location of the store
    Path,
}

pub(crate) fn run(store: Option<&Path>, args: &StoreArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    match args.command {
        UpkeepCommand::Check => check(&jobs, args.json),
        UpkeepCommand::Compact => {
            let [before, after] = jobs.store.compact().map_err(CommandError::from)?;
            let mut out = io::stdout().lock();
            if args.json {
                let compacted = CompactedJson { bytes_before: before, bytes_after: after };
                json(&mut out, &compacted)?;
            } else {
                writeln!(out, "compacted from {before} to {after} bytes")?;
            }
            Ok(Exit::Done)
        }
        UpkeepCommand::Path => {
            let mut out = io::stdout().lock();
            if args.json {
                let path = jobs.location.to_string();
                json(&mut out, &PathJson { path })?;
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
    let mut problem = |found: ProblemJson<'_>, text: String| {
        wrong = wrong.saturating_add(1);
        if as_json { json(&mut out, &found) } else { writeln!(out, "{text}") }
    };
    for listed in jobs.list("")? {
        let id = listed.aggregate.id();
        number = number.saturating_add(1);
        records = records.saturating_add(listed.head.version.0);
        let found = check_job(jobs, id).unwrap_or_else(|refused| vec![refused.to_string()]);
        for what in found {
            let said = format!("job {id}: {what}");
            let problem_json = ProblemJson { job: Some(id), ..ProblemJson::of(what) };
            problem(problem_json, said)?;
        }
    }
    for listed in breakers::names(&*jobs.store).map_err(CommandError::from)? {
        if let Err(error) = breakers::records(&*jobs.store, &listed, Version::default()) {
            let said = format!("breaker {}: {error}", plain(&listed));
            let problem_json = ProblemJson { breaker: Some(&listed), ..ProblemJson::of(error.to_string()) };
            problem(problem_json, said)?;
        }
    }
    if let Err(error) = catalog::records(&*jobs.store, Version::default()) {
        let problem_json = ProblemJson { catalog: Some(true), ..ProblemJson::of(error.to_string()) };
        problem(problem_json, format!("catalog: {error}"))?;
    }
    if as_json {
        let checked = CheckedJson { jobs: number, records, problems: wrong };
        json(&mut out, &checked)?;
    } else {
        let jobs = count(number, "job", "jobs");
        let problems = count(wrong, "problem", "problems");
        writeln!(out, "{jobs}, {records} records, {problems}")?;
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
}

#[derive(Serialize)]
struct PathJson {
    path: String,
}

#[derive(Serialize)]
struct CompactedJson {
    bytes_before: u64,
    bytes_after: u64,
}

/// A problem and its place; fields that do not apply are omitted.
#[derive(Default, Serialize)]
struct ProblemJson<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    breaker: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catalog: Option<bool>,
    problem: String,
}

impl ProblemJson<'_> {
    fn of(problem: String) -> Self {
        Self { problem, ..Self::default() }
    }
}

#[derive(Serialize)]
struct CheckedJson {
    jobs: usize,
    records: u64,
    problems: usize,
}

fn check_job(jobs: &Jobs, id: &str) -> Result<Vec<String>, CommandError> {
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
        let broken = law::violations_by_record(job, &record);
        let broken = broken.iter();
        found.extend(broken.map(|it| format!("record {version}: {}", it.law)));
        job.apply(&record);
    }
    let broken = job.as_ref().map(law::violations_in_state).unwrap_or_default();
    found.extend(broken.iter().map(|it| format!("{}: {}", it.law, it.what)));
    Ok(found)
}
