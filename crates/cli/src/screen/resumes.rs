//! What each resume of a job found and did.

use std::io::{self, Write};

use serde::Serialize;
use undaunted_engine::job::Job;
use undaunted_engine::view::{JobStanding, rfc3339};
use undaunted_store::Owner;

use super::duration::{measured, millis};
use super::words::count;
use crate::past::Past;
use undaunted_engine::view::Resume;

#[derive(Serialize)]
struct ResumesJson<'a> {
    job: &'a str,
    status: &'static str,
    runs: u32,
    resumes: Vec<ResumeJson>,
}

#[derive(Serialize)]
struct ResumeJson {
    run: u32,
    at: String,
    downtime_ms: u64,
    planned: bool,
    restored: RestoredJson,
    attempts_before: u64,
    attempts_after: u64,
}

#[derive(Serialize)]
struct RestoredJson {
    running: u32,
    waiting: u32,
    held: u32,
    settled: u32,
    pending: u32,
}

pub(crate) fn json(out: &mut impl Write, past: &Past, owner: Option<&Owner>) -> io::Result<()> {
    let resumes = past.projection.resumes.iter().map(|resume| {
        let Resume { at, resumed, .. } = resume;
        let found = resumed.restored;
        ResumeJson {
            run: resumed.run,
            at: rfc3339(*at),
            downtime_ms: millis(resumed.away),
            planned: resumed.planned,
            restored: RestoredJson {
                running: found.running,
                waiting: found.waiting,
                held: found.held.unwrap_or_default(),
                settled: found.settled,
                pending: found.pending,
            },
            attempts_before: found.attempts,
            attempts_after: resume.attempts,
        }
    });
    let shown = ResumesJson {
        job: past.job.id(),
        status: JobStanding::of(&past.job, owner.is_some()).word(),
        runs: past.job.run,
        resumes: resumes.collect(),
    };
    serde_json::to_writer(&mut *out, &shown)?;
    writeln!(out)
}

pub(crate) fn show(out: &mut impl Write, past: &Past, owner: Option<&Owner>) -> io::Result<()> {
    let job: &Job = &past.job;
    let first = past.projection.resumes.first();
    let first = first.map_or(job.counts.attempts, |it| it.resumed.restored.attempts);
    let runs = count(job.run, "run", "runs");
    let standing = JobStanding::of(job, owner.is_some()).word();
    writeln!(out, "job {}  {standing}, {runs}", job.id())?;
    writeln!(out, "  run 1  {}", rfc3339(job.times.submitted_at))?;
    writeln!(out, "    attempts  {first} started")?;
    for resume in &past.projection.resumes {
        let resumed = resume.resumed;
        let found = resumed.restored;
        let why = if resumed.planned {
            "it had been suspended"
        } else {
            "whoever ran it had died"
        };
        writeln!(out, "  run {}  {}", resumed.run, rfc3339(resume.at))?;
        writeln!(out, "    downtime  {} ({why})", measured(resumed.away))?;
        writeln!(
            out,
            "    restored  {} running, {} waiting, {}{} done, {} to come",
            found.running,
            found.waiting,
            held(found.held),
            found.settled,
            found.pending
        )?;
        writeln!(
            out,
            "    attempts  {} before, {} started since",
            found.attempts, resume.attempts
        )?;
    }
    if past.projection.resumes.is_empty() {
        writeln!(out, "  nobody has had to go on with it")?;
    }
    Ok(())
}

/// `2 held, `, if any are.
pub(super) fn held(held: Option<u32>) -> String {
    match held {
        None | Some(0) => String::new(),
        Some(held) => format!("{held} held, "),
    }
}
