//! The list of jobs.

use std::io::{self, Write};

use serde::Serialize;
use undaunted_engine::event::{Counts, Event, Record};
use undaunted_engine::job::Job;
use undaunted_engine::view::{ItemCounts, JobStanding, rfc3339};
use undaunted_policy::Timestamp;
use undaunted_store::Owner;

use crate::jobs::file_of;

pub(crate) struct JobLine {
    pub(crate) job: String,
    pub(crate) submitted: Timestamp,
    name: String,
    status: JobStanding,
    counts: Counts,
    owner: Option<u32>,
}

impl JobLine {
    pub(crate) fn ended(id: &str, first: &Record, last: &Record) -> Option<Self> {
        let Event::Job(event) = &last.event else {
            return None;
        };
        let (stage, ended) = event.ended()?;
        Some(Self {
            job: id.to_owned(),
            submitted: first.at,
            name: short_name(file_of(first).unwrap_or_default()),
            status: JobStanding::As(stage.into()),
            counts: ended.counts,
            owner: None,
        })
    }

    pub(crate) fn of(job: &Job, owner: Option<Owner>) -> Self {
        let status = JobStanding::of(job, owner.is_some());
        Self {
            job: job.id().to_owned(),
            submitted: job.times.submitted_at,
            name: short_name(&job.submitted().file),
            status,
            counts: job.tally(),
            owner: owner.map(|owner| owner.pid),
        }
    }

    pub(crate) fn unreadable(id: &str, why: &str) -> Self {
        Self {
            job: id.to_owned(),
            submitted: Timestamp::ZERO,
            name: why.lines().next().unwrap_or_default().to_owned(),
            status: JobStanding::Unreadable,
            counts: Counts::default(),
            owner: None,
        }
    }
}

fn short_name(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    // A typed job has no file, but a name after a dash.
    let typed = name.strip_prefix('-').filter(|name| !name.is_empty());
    typed.unwrap_or(name).to_owned()
}

#[derive(Serialize)]
struct LineJson<'l> {
    job: &'l str,
    status: &'l str,
    workflow: &'l str,
    submitted_at: String,
    items: ItemCounts,
    attempts: u64,
    retries: u64,
    owner: Option<u32>,
}

pub(crate) fn json(out: &mut impl Write, lines: &[JobLine]) -> io::Result<()> {
    for line in lines {
        let counts = &line.counts;
        let shown = LineJson {
            job: &line.job,
            status: line.status.word(),
            workflow: &line.name,
            submitted_at: rfc3339(line.submitted),
            items: counts.into(),
            attempts: counts.attempts,
            retries: counts.retries,
            owner: line.owner,
        };
        serde_json::to_writer(&mut *out, &shown)?;
        writeln!(out)?;
    }
    Ok(())
}

pub(crate) fn show(out: &mut impl Write, lines: &[JobLine]) -> io::Result<()> {
    if lines.is_empty() {
        return writeln!(io::stderr(), "no jobs yet; `undaunted run FILE` starts one");
    }
    writeln!(
        out,
        "{:<10}  {:<11}  {:>9}  {:>5}  {:>8}  {:<20}  WORKFLOW",
        "JOB", "STATUS", "DONE", "DEAD", "ATTEMPTS", "SUBMITTED"
    )?;
    for line in lines {
        let counts = &line.counts;
        let done = format!("{}/{}", counts.succeeded, counts.total);
        let submitted = rfc3339(line.submitted);
        let submitted = submitted.get(..19).unwrap_or_default().replace('T', " ");
        writeln!(
            out,
            "{:<10}  {:<11}  {done:>9}  {:>5}  {:>8}  {submitted:<20}  {}",
            line.job,
            line.status.word(),
            counts.dead,
            counts.attempts,
            line.name
        )?;
    }
    let mut lines = lines.iter();
    if let Some(line) = lines.find(|line| line.status == JobStanding::Interrupted) {
        writeln!(
            out,
            "go on with an interrupted job:  undaunted resume {}",
            line.job
        )?;
    }
    Ok(())
}
