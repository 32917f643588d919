//! `undaunted store`: checks, compacts and locates the store.

use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};
use serde::Serialize;
use undaunted_engine::job::Job;
use undaunted_engine::law;
use undaunted_runner::{breakers, catalog, journal};
use undaunted_store::Version;

use crate::screen::{count, plain, print};
use crate::{Exit, Jobs, Result, StorePlace, StoreUse};

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Read all records and check their consistency
    Check,
    /// Return the space of removed jobs to the disk
    Compact,
    /// Print the location of the store
    Path,
}

pub(crate) fn run(store: Option<&Path>, args: &StoreArgs) -> Result<Exit> {
    match args.command {
        StoreCommand::Check => return check(&Jobs::open_for(store, StoreUse::Read)?, args.json),
        StoreCommand::Compact => {
            let jobs = Jobs::open_for(store, StoreUse::Remove)?;
            let [bytes_before, bytes_after] = jobs.store.compact()?;
            print(&CompactedJson { bytes_before, bytes_after }, args.json, |out, _| {
                writeln!(out, "compacted from {bytes_before} to {bytes_after} bytes")
            })?;
        }
        StoreCommand::Path => {
            let path = StorePlace::named(store)?.location().to_string();
            print(&PathJson { path }, args.json, |out, view| writeln!(out, "{}", view.path))?;
        }
    }
    Ok(Exit::Done)
}

fn check(jobs: &Jobs, as_json: bool) -> Result<Exit> {
    let (mut number, mut records, mut wrong) = (0_usize, 0_u64, 0_usize);
    let mut report = |problem: ProblemJson<'_>| {
        wrong = wrong.saturating_add(1);
        print(&problem, as_json, |out, ProblemJson { job, breaker, problem, .. }| match (job, breaker) {
            (Some(job), _) => writeln!(out, "job {job}: {problem}"),
            (_, Some(breaker)) => writeln!(out, "breaker {}: {problem}", plain(breaker)),
            (None, None) => writeln!(out, "catalog: {problem}"),
        })
    };
    for listed in jobs.list("")? {
        let id = listed.aggregate.id();
        number = number.saturating_add(1);
        records = records.saturating_add(listed.head.version.0);
        let problems = check_job(jobs, id).unwrap_or_else(|refused| vec![refused.to_string()]);
        for problem in problems {
            report(ProblemJson { job: Some(id), ..ProblemJson::of(problem) })?;
        }
    }
    for name in breakers::names(&*jobs.store)? {
        if let Err(error) = breakers::records(&*jobs.store, &name, Version::default()) {
            report(ProblemJson { breaker: Some(&name), ..ProblemJson::of(error.to_string()) })?;
        }
    }
    if let Err(error) = catalog::records(&*jobs.store, Version::default()) {
        report(ProblemJson { catalog: Some(true), ..ProblemJson::of(error.to_string()) })?;
    }
    print(&CheckedJson { jobs: number, records, problems: wrong }, as_json, |out, _| {
        let (jobs, problems) = (count(number, "job", "jobs"), count(wrong, "problem", "problems"));
        writeln!(out, "{jobs}, {records} records, {problems}")
    })?;
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

fn check_job(jobs: &Jobs, id: &str) -> Result<Vec<String>> {
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
        found.extend(broken.iter().map(|it| format!("record {version}: {}", it.law)));
        job.apply(&record);
    }
    let broken = job.as_ref().map(law::violations_in_state).unwrap_or_default();
    found.extend(broken.iter().map(|it| format!("{}: {}", it.law, it.what)));
    Ok(found)
}
