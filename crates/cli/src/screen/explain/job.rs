//! A job: why it stands as it does, and which of its items are worth a look.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{Item, Job, Settled};
use undaunted_engine::view::{
    ItemCounts, ItemStanding, JobStanding, Report, Status, all_held, holding, report, rfc3339,
};
use undaunted_policy::{Reason, Timestamp};
use undaunted_store::Owner;

use super::item::quoted;
use super::place;
use crate::screen::duration::millis;
use crate::screen::holds::{self, HoldingJson};
use crate::screen::job::waiting;
use crate::screen::limits::{self, Late};
use crate::screen::summary::{counts, error_lines, status};
use crate::screen::words::{one_line, plain};

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
    /// As in `show`.
    #[serde(flatten)]
    limits: Map<String, Value>,
    late: Vec<Value>,
    look: Vec<LookJson<'a>>,
}

#[derive(Serialize)]
struct ItemsJson {
    #[serde(flatten)]
    counts: ItemCounts,
    running: usize,
    waiting: usize,
    held: usize,
}

#[derive(Serialize)]
struct LookJson<'a> {
    item: &'a str,
    status: &'static str,
    reason: Option<&'static str>,
    error: Option<&'a str>,
    due_at: Option<String>,
    held: Option<HoldingJson>,
    explain: String,
}

pub(crate) fn json(
    out: &mut impl Write,
    (job, breakers): (&Job, &AdmissionControl),
    owner: Option<&Owner>,
    late: &[Late],
) -> io::Result<()> {
    let report = report(job);
    let counts = report.counts;
    let look = worth_a_look(job).into_iter().map(|place| {
        let standing = ItemStanding::of(job, place);
        let name = job.identity(place);
        LookJson {
            item: name,
            status: standing.word(),
            reason: standing.reason().map(Reason::word),
            error: error_of(job, place),
            due_at: place::due(job, place).map(rfc3339),
            held: holding(job, breakers, place).map(|held| holds::json(breakers, &held)),
            explain: format!("undaunted explain {}", quoted(job.id(), name)),
        }
    });
    let shown = JobJson {
        job: job.id(),
        status: JobStanding::of(job, owner.is_some()).word(),
        reason: report.reason.map(Reason::word),
        error: report.error.as_deref(),
        sentence: sentence(job, &report, owner),
        items: ItemsJson {
            counts: (&counts).into(),
            running: job.starts.running.len(),
            waiting: job.steps.iter().map(|step| step.waiting.len()).sum(),
            held: all_held(job).count(),
        },
        attempts: counts.attempts,
        retries: counts.retries,
        delay_ms: millis(counts.delay),
        limits: limits::json(job, breakers),
        late: limits::late_list(job, late),
        look: look.collect(),
    };
    serde_json::to_writer(&mut *out, &shown)?;
    writeln!(out)
}

pub(crate) fn show(
    out: &mut impl Write,
    (job, breakers): (&Job, &AdmissionControl),
    owner: Option<&Owner>,
    now: Timestamp,
    late: &[Late],
) -> io::Result<()> {
    let report = report(job);
    let name = job.workflow().name.as_deref();
    let name = name.unwrap_or(&job.submitted().file);
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
    if job.pool.is_none() {
        writeln!(
            out,
            "  pool           none: only the limits of each command hold"
        )?;
    }
    for (label, fact) in limits::facts(job, breakers, now) {
        writeln!(out, "  {label:<14} {fact}")?;
    }
    not_waited_for(out, &report)?;
    for one in late.iter().take(NAMED) {
        writeln!(out, "  late           {}", limits::of_late(job, one))?;
    }
    for found in worth_a_look(job) {
        let name = job.identity(found);
        let is_there = owner.is_some() || !job.stage.has_ended();
        writeln!(
            out,
            "\n  {}: {}",
            plain(name),
            place::sentence(job, breakers, found, now, is_there, false)
        )?;
        if let Some(error) = error_of(job, found) {
            writeln!(out, "    {}", one_line(error))?;
        }
        writeln!(out, "    undaunted explain {}", quoted(job.id(), name))?;
    }
    more(out, job)
}

fn more(out: &mut impl Write, job: &Job) -> io::Result<()> {
    let counts = [
        (job.dead.len(), "dead letters", "undaunted dlq ls"),
        (waiting(job).count(), "waiting", "undaunted show"),
        (all_held(job).count(), "held", "undaunted show"),
    ];
    for (many, what, look) in counts {
        let left = many.saturating_sub(NAMED);
        if left > 0 {
            writeln!(out, "\n  … and {left} more {what}: {look} {}", job.id())?;
        }
    }
    Ok(())
}

fn sentence(job: &Job, report: &Report, owner: Option<&Owner>) -> String {
    let because = match report.reason {
        Some(reason) if report.reached.is_some_and(|reached| !reached.success) => {
            let decided = report.reached.as_ref().map(limits::decided);
            format!(" ({reason}): {}", decided.unwrap_or_default())
        }
        Some(reason) => format!(" ({reason}): {}", reason.sentence()),
        None => String::new(),
    };
    let resume = format!("go on with `undaunted resume {}`", job.id());
    let standing = JobStanding::of(job, owner.is_some());
    match standing {
        JobStanding::As(Status::Running) => {
            let owner = owner.map(|owner| format!(", by process {}", owner.pid));
            format!("running{}", owner.unwrap_or_default())
        }
        JobStanding::Interrupted => format!("interrupted: whoever ran it has died; {resume}"),
        JobStanding::As(Status::Suspended) => format!("suspended in good order; {resume}"),
        JobStanding::As(Status::Stopping) => {
            format!("stopping{because}; what runs is waited for")
        }
        JobStanding::As(Status::Partial) => format!("{}{because}", status(report)),
        JobStanding::Paused
        | JobStanding::Unreadable
        | JobStanding::As(Status::Completed | Status::Failed | Status::Cancelled) => {
            format!("{}{because}", standing.word())
        }
    }
}

fn not_waited_for(out: &mut impl Write, report: &Report) -> io::Result<()> {
    if report.missing.is_empty() {
        return Ok(());
    }
    let label = match report.reached {
        Some(_) => "not waited for",
        None => "never started ",
    };
    let named = report.missing.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|missing| format!("{} ({})", plain(&missing.item), missing.reason))
        .collect();
    let more = match report.missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    writeln!(out, "  {label} {}{more}", named.join(", "))
}

fn error_of(job: &Job, item: ItemId) -> Option<&str> {
    let dead = job.dead.get(&item).map(|dead| &**dead);
    let active = job.active(item).or(dead)?;
    Some(job.texts.read(active.error.as_ref()?))
}

/// Dead letters first, then items that wait for a retry, then held ones; a few of each.
fn worth_a_look(job: &Job) -> Vec<ItemId> {
    let steps = || StepId::all().zip(&job.steps);
    let dead = steps().flat_map(|(step, state)| {
        let items = state.items.iter();
        let dead = items.filter(|(_, it)| matches!(it, Item::Settled(Settled::Dead(_))));
        dead.map(move |(index, _)| step.item(index))
    });
    let waiting = waiting(job).take(NAMED).map(|(item, _)| item);
    let held = all_held(job).take(NAMED);
    dead.take(NAMED).chain(waiting).chain(held).collect()
}
