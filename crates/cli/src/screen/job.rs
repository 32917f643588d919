//! The state of one job.

use std::io::{self, Write};

use serde_json::{Value, json};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{Doing, Item, Job, Settled, StepStage, StepState};
use undaunted_engine::view::{JobStanding, Status, all_held, holding, report, rfc3339};
use undaunted_policy::Timestamp;
use undaunted_store::Owner;

use super::duration::{millis, short};
use super::holds;
use super::limits::{self, Late};
use super::summary::{counts, error_lines};
use super::timeline;
use super::words::{bounds, failure, plain};
use crate::past::Past;

const NAMED: usize = 10;

pub(crate) struct Paper {
    pub(crate) columns: usize,
    pub(crate) colour: bool,
}

pub(crate) fn json(
    out: &mut impl Write,
    past: &Past,
    owner: Option<&Owner>,
    now: Timestamp,
    late: &[Late],
) -> io::Result<()> {
    let job = &past.job;
    let mut shown = serde_json::to_value(report(job))?;
    if let Value::Object(fields) = &mut shown {
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        let standing = JobStanding::of(job, owner.is_some());
        put("status", standing.word().into());
        put("workflow", job.submitted().file.clone().into());
        put("run", job.run.into());
        put("seed", job.submitted().seed.into());
        put("submitted_at", rfc3339(job.times.submitted_at).into());
        put("last_event_at", rfc3339(job.times.last_at).into());
        put("owner", owner.map(|owner| owner.pid).into());
        let steps = StepId::all().zip(&job.steps);
        let steps = steps.map(|(step, state)| step_json(job, step, state));
        put("steps", steps.collect());
        let waiting = waiting(job).map(|(item, due)| waiting_json(job, item, due, now));
        put("waiting", waiting.collect());
        let held = all_held(job).filter_map(|place| held_json(past, place));
        put("held", held.collect());
        put("late", limits::late_list(job, late).into());
        put("timeline", serde_json::to_value(timeline::json(past))?);
        fields.extend(limits::json(job, &past.breakers));
    }
    writeln!(out, "{shown}")
}

fn step_json(job: &Job, step: StepId, state: &StepState) -> Value {
    json!({
        "step": job.plan().step(step).map(|step| step.name.as_str()),
        "stage": stage(state.stage),
        "items": state.items.len(),
        "running": state.running,
        "waiting": state.waiting.len(),
        "held": state.held.len(),
        "succeeded": state.succeeded,
        "dead": state.dead,
        "skipped": state.skipped,
        "missing": limits::missing(state),
    })
}

fn held_json(past: &Past, item: ItemId) -> Option<Value> {
    let (job, breakers) = (&past.job, &past.breakers);
    let active = job.active(item)?;
    let command = job.plan().command(active.command);
    let held = holding(job, breakers, item)?;
    let mut shown = serde_json::to_value(holds::json(breakers, &held)).ok()?;
    if let Value::Object(fields) = &mut shown {
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("item", job.identity(item).into());
        put("command", command.map(|command| command.id.as_str()).into());
        put("attempts", active.attempts.into());
        let error = active.error.as_ref().map(|error| job.texts.read(error));
        put("error", error.into());
    }
    Some(shown)
}

fn waiting_json(job: &Job, item: ItemId, due: Timestamp, now: Timestamp) -> Value {
    let active = job.active(item);
    let command = active.and_then(|active| job.plan().command(active.command));
    let budget = command.and_then(|command| {
        let limits = command.retry.policy.terms().limits();
        limits.budget_expires_at(active?.progress().spent, due)
    });
    json!({
        "item": job.identity(item),
        "command": command.map(|command| command.id.as_str()),
        "attempts": active.map(|active| active.attempts),
        "due_at": rfc3339(due),
        "due_in_ms": millis(due.since(now)),
        "spent_ms": active.map(|active| millis(active.progress().spent)),
        "retry_budget_expires_at": budget.map(rfc3339),
        "error": active
            .and_then(|active| active.error.as_ref())
            .map(|error| job.texts.read(error)),
    })
}

/// Items that wait for their retry, in order of time within each step.
pub(super) fn waiting(job: &Job) -> impl Iterator<Item = (ItemId, Timestamp)> {
    let steps = StepId::all().zip(&job.steps);
    steps.flat_map(|(step, state)| {
        let waiting = state.waiting.iter();
        let timed = waiting.filter(|(due, _)| *due > Timestamp::ZERO);
        timed.map(move |(due, item)| (step.item(item), due))
    })
}

const fn stage(stage: StepStage) -> &'static str {
    match stage {
        StepStage::Waiting => "waiting",
        StepStage::Reading(_) => "reading",
        StepStage::Running => "running",
        StepStage::Completed => "completed",
        StepStage::Failed => "failed",
        StepStage::Skipped => "skipped",
    }
}

pub(crate) fn show(
    out: &mut impl Write,
    past: &Past,
    owner: Option<&Owner>,
    now: Timestamp,
    late: &[Late],
    paper: &Paper,
) -> io::Result<()> {
    let job = &past.job;
    let report = report(job);
    let name = report.name.as_deref().unwrap_or(&job.submitted().file);
    let runner = match owner {
        Some(owner) => format!(", run by process {}", owner.pid),
        None => String::new(),
    };
    writeln!(out, "job {}  {name}", job.id())?;
    let (standing, run) = (JobStanding::of(job, owner.is_some()).word(), job.run);
    writeln!(out, "  status     {standing} (run {run}{runner})")?;
    writeln!(out, "  submitted  {}", rfc3339(job.times.submitted_at))?;
    writeln!(out, "  so far     {}", counts(&report))?;
    if let Some(error) = &report.error {
        writeln!(
            out,
            "  error      {}",
            error_lines(error).join("\n             ")
        )?;
    }
    for (step, state) in StepId::all().zip(&job.steps) {
        show_step(out, job, step, state)?;
    }
    for (item, due) in waiting(job).take(NAMED) {
        show_waiting(out, job, item, due, now)?;
    }
    show_held(out, past, now)?;
    for (label, fact) in limits::facts(job, &past.breakers, now) {
        writeln!(out, "  {label:<10} {fact}")?;
    }
    show_late(out, job, late)?;
    timeline::show(out, past, now, paper.columns, paper.colour)?;
    let ended = job.stage.has_ended();
    if !ended && job.times.paused.is_some() {
        writeln!(out, "  go on:  undaunted unpause {}", job.id())?;
    }
    if !ended && owner.is_none() {
        writeln!(out, "  go on:  undaunted resume {}", job.id())?;
    }
    if Status::from(job.stage) != Status::Completed {
        writeln!(out, "  why:    undaunted explain {}", job.id())?;
    }
    if ended && !job.dead.is_empty() {
        writeln!(out, "  again:  undaunted dlq redrive {}", job.id())?;
    }
    if Status::from(job.stage) != Status::Completed || ended {
        writeln!(out, "  all of it:  undaunted events {}", job.id())?;
    }
    Ok(())
}

fn show_step(out: &mut impl Write, job: &Job, step: StepId, state: &StepState) -> io::Result<()> {
    let name = job.plan().step(step).map(|step| step.name.as_str());
    let name = name.unwrap_or_default();
    let mut facts = vec![stage(state.stage).to_owned()];
    if job.plan().is_map(step) {
        facts.push(format!("{} of {} done", state.succeeded, state.items.len()));
    }
    let many = [
        (state.running, "running"),
        (
            u32::try_from(state.waiting.len()).unwrap_or(u32::MAX),
            "waiting",
        ),
        (state.held.len(), "held"),
        (state.dead, "dead"),
        (state.skipped, "skipped"),
        (limits::missing(state), "not waited for"),
    ];
    let many = many.iter().filter(|(number, _)| *number > 0);
    facts.extend(many.map(|(number, word)| format!("{number} {word}")));
    writeln!(out, "  {name:<10} {}", facts.join(", "))?;
    if !job.plan().is_map(step) {
        return Ok(());
    }
    let dead = state.items.iter().filter_map(|(item, found)| match found {
        Item::Settled(Settled::Dead(reason)) => Some((item, reason)),
        Item::Pending | Item::Active(_) | Item::Settled(_) => None,
    });
    for (item, reason) in dead.take(NAMED) {
        let identity = plain(state.items.identity(item));
        writeln!(out, "    dead: {identity} ({reason})")?;
    }
    let missing = state.items.iter().filter_map(|(item, found)| match found {
        Item::Settled(Settled::Missing(reason)) => Some((item, reason)),
        Item::Pending => Some((item, state.reached?.reason())),
        Item::Active(_) | Item::Settled(_) => None,
    });
    for (item, reason) in missing.take(NAMED) {
        let identity = plain(state.items.identity(item));
        writeln!(out, "    not waited for: {identity} ({reason})")?;
    }
    Ok(())
}

fn show_held(out: &mut impl Write, past: &Past, now: Timestamp) -> io::Result<()> {
    let (job, breakers) = (&past.job, &past.breakers);
    for item in all_held(job).take(NAMED) {
        let Some(held) = holding(job, breakers, item) else {
            continue;
        };
        let name = plain(job.identity(item));
        let said = holds::sentence(job, breakers, &held, now);
        writeln!(out, "    {name}: {said}")?;
    }
    match all_held(job).skip(NAMED).count() {
        0 => Ok(()),
        more => writeln!(out, "    … {more} more are held"),
    }
}

fn show_late(out: &mut impl Write, job: &Job, late: &[Late]) -> io::Result<()> {
    for one in late.iter().take(NAMED) {
        writeln!(out, "  late       {}", limits::of_late(job, one))?;
    }
    match late.len().saturating_sub(NAMED) {
        0 => Ok(()),
        more => writeln!(out, "  late       … {more} more"),
    }
}

fn show_waiting(
    out: &mut impl Write,
    job: &Job,
    item: ItemId,
    due: Timestamp,
    now: Timestamp,
) -> io::Result<()> {
    let Some(active) = job.active(item) else {
        return Ok(());
    };
    let identity = job.identity(item);
    let when = match active.doing {
        Doing::Waiting(_) if due > now => format!("in {}", short(due.since(now))),
        Doing::Waiting(_) | Doing::Running(_) | Doing::Held | Doing::Undecided => "now".to_owned(),
    };
    let said = failure(job, active.cause, active.error.as_ref());
    let command = job.plan().command(active.command);
    let bound = command.and_then(|command| command.retry.policy.bound().retries());
    let (retries, attempts) = bounds(bound);
    writeln!(
        out,
        "    {}: attempt {}{attempts} failed ({said}); retry {}{retries} due {when}",
        plain(identity),
        active.attempts,
        active.progress().retries
    )
}
