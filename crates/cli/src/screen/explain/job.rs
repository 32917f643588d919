//! A job: why it stands as it does, and which of its items are worth a look.

use std::io::{self, Write};

use serde::Serialize;
use undaunted_engine::job::{Item, Job, Settled};
use undaunted_engine::view::{ItemCounts, Report, report, rfc3339};
use undaunted_policy::{Reason, Timestamp};
use undaunted_store::Owner;

use super::item::quoted;
use super::place;
use crate::screen::duration::short;
use crate::screen::jobs::standing;
use crate::screen::summary::{counts, error_lines};
use crate::screen::words::one_line;
use crate::target::{self, ItemPlace};

/// How many items of a kind are named.
const NAMED: usize = 5;

#[derive(Serialize)]
struct JobJson<'a> {
    job: &'a str,
    status: &'static str,
    reason: Option<&'static str>,
    error: Option<&'a str>,
    sentence: String,
    items: ItemsJson,
    attempts: u64,
    retries: u64,
    delay_ms: u64,
    pool: Option<PoolJson>,
    deadline: Option<String>,
    look: Vec<LookJson<'a>>,
}

#[derive(Serialize)]
struct ItemsJson {
    #[serde(flatten)]
    counts: ItemCounts,
    running: usize,
    waiting: usize,
}

#[derive(Serialize)]
struct PoolJson {
    total: u32,
    used: u32,
    per_item: u32,
}

#[derive(Serialize)]
struct LookJson<'a> {
    item: &'a str,
    status: &'static str,
    reason: Option<&'static str>,
    error: Option<&'a str>,
    due_at: Option<String>,
    explain: String,
}

pub(crate) fn json(
    out: &mut impl Write,
    job: &Job,
    owner: Option<&Owner>,
    _now: Timestamp,
) -> io::Result<()> {
    let report = report(job);
    let counts = report.counts;
    let look = worth_a_look(job).into_iter().map(|place| {
        let (status, reason) = place::word(job, place);
        let name = target::name(job, place);
        LookJson {
            item: name,
            status,
            reason: reason.map(Reason::word),
            error: error_of(job, place),
            due_at: place::due(job, place).map(rfc3339),
            explain: format!("undaunted explain {}", quoted(job.id(), name)),
        }
    });
    let shown = JobJson {
        job: job.id(),
        status: standing(job, owner),
        reason: report.reason.map(Reason::word),
        error: report.error.as_deref(),
        sentence: sentence(job, &report, owner),
        items: ItemsJson {
            counts: (&counts).into(),
            running: job.running.len(),
            waiting: job.steps.iter().map(|step| step.waiting.len()).sum(),
        },
        attempts: counts.attempts,
        retries: counts.retries,
        delay_ms: u64::try_from(counts.delay.as_millis()).unwrap_or(u64::MAX),
        pool: job.pool.map(|pool| PoolJson {
            total: pool.limits.total,
            used: pool.consumed,
            per_item: pool.limits.per_item,
        }),
        deadline: job.deadline().map(rfc3339),
        look: look.collect(),
    };
    serde_json::to_writer(&mut *out, &shown)?;
    writeln!(out)
}

pub(crate) fn show(
    out: &mut impl Write,
    job: &Job,
    owner: Option<&Owner>,
    now: Timestamp,
) -> io::Result<()> {
    let report = report(job);
    let name = job
        .workflow()
        .name
        .as_deref()
        .unwrap_or(&job.submitted().file);
    writeln!(out, "job {}  {name}", job.id())?;
    writeln!(out, "  {}", sentence(job, &report, owner))?;
    writeln!(out, "  {}", counts(&report))?;
    if let Some(error) = &report.error {
        writeln!(
            out,
            "  first failure  {}",
            error_lines(error).join("\n                 ")
        )?;
    }
    match job.pool {
        Some(pool) => writeln!(
            out,
            "  pool           {} of {} retries used, at most {} by one item",
            pool.consumed, pool.limits.total, pool.limits.per_item
        )?,
        None => writeln!(
            out,
            "  pool           none: only the limits of each command hold"
        )?,
    }
    if let Some(deadline) = job.deadline() {
        let left = match deadline > now {
            _ if job.stage.has_ended() => String::new(),
            true => format!(", in {}", short(deadline.since(now))),
            false => format!(", {} ago", short(now.since(deadline))),
        };
        writeln!(out, "  deadline       {}{left}", rfc3339(deadline))?;
    }
    for found in worth_a_look(job) {
        let name = target::name(job, found);
        let is_there = owner.is_some() || !job.stage.has_ended();
        writeln!(
            out,
            "\n  {name}: {}",
            place::sentence(job, found, now, is_there)
        )?;
        if let Some(error) = error_of(job, found) {
            writeln!(out, "    {}", one_line(error))?;
        }
        writeln!(out, "    undaunted explain {}", quoted(job.id(), name))?;
    }
    Ok(())
}

/// Why it stands as it does.
fn sentence(job: &Job, report: &Report, owner: Option<&Owner>) -> String {
    let because = match report.reason {
        Some(reason) => format!(" ({reason}): {}", reason.sentence()),
        None => String::new(),
    };
    let resume = format!("go on with `undaunted resume {}`", job.id());
    match standing(job, owner) {
        "running" => match (job.paused, owner) {
            (Some(since), _) => format!("paused since {}", rfc3339(since)),
            (None, Some(owner)) => format!("running, by process {}", owner.pid),
            (None, None) => "running".to_owned(),
        },
        "interrupted" => format!("interrupted: whoever ran it has died; {resume}"),
        "suspended" => format!("suspended in good order; {resume}"),
        "stopping" => format!("stopping{because}; what runs is waited for"),
        "partial" => format!("completed with dead letters{because}"),
        status => format!("{status}{because}"),
    }
}

/// What was said last by an item that failed.
fn error_of(job: &Job, (step, item): ItemPlace) -> Option<&str> {
    let dead = job.dead.get(&(step, item)).map(|dead| &**dead);
    let active = job.active(step, item).or(dead)?;
    Some(job.texts.read(active.error.as_ref()?))
}

/// Dead letters first, then what waits for a retry; a few of each.
fn worth_a_look(job: &Job) -> Vec<ItemPlace> {
    let steps = || (0_u32..).zip(&job.steps);
    let dead = steps().flat_map(|(step, state)| {
        let items = state.items.iter();
        let dead = items.filter(|(_, it)| matches!(it, Item::Settled(Settled::Dead(_))));
        dead.map(move |(item, _)| (step, item))
    });
    let waiting = steps().flat_map(|(step, state)| {
        let waiting = state.waiting.iter();
        let timed = waiting.filter(|(due, _)| *due > Timestamp::ZERO);
        timed.map(move |(_, item)| (step, *item))
    });
    dead.take(NAMED).chain(waiting.take(NAMED)).collect()
}
