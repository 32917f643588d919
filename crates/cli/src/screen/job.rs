//! The status of one job.

use std::io::{self, Write};

use undaunted_engine::view::{JobStatus, JobView, LiveJobStatus, MissingItem, StepView, WaitingView};
use undaunted_policy::Timestamp;

use super::limits::{self, has_ended};
use super::words::bounds;
use super::{error_lines, holds, one_line, plain, short, summary, timeline};

const SHOWN: usize = 10;

pub(crate) struct JobLayout {
    pub(crate) now: Timestamp,
    pub(crate) columns: usize,
    pub(crate) colour: bool,
}

pub(crate) fn show(out: &mut impl Write, job: &JobView, layout: &JobLayout) -> io::Result<()> {
    let now = layout.now;
    let runner = match job.owner {
        Some(owner) => format!(", run by process {owner}"),
        None => String::new(),
    };
    let name = name(job.name.as_deref(), job.workflow.as_deref());
    writeln!(out, "job {}  {name}", job.job)?;
    writeln!(out, "  status     {} (run {}{runner})", job.status.word(), job.run)?;
    writeln!(out, "  submitted  {}", job.submitted_at)?;
    writeln!(out, "  progress   {}", counts(job))?;
    if let Some(error) = &job.error {
        writeln!(out, "  error      {}", error_lines(error).join("\n             "))?;
    }
    for step in &job.steps {
        show_step(out, step)?;
    }
    for waiting in job.waiting.iter().take(SHOWN) {
        show_waiting(out, waiting, now)?;
    }
    show_held(out, job, now)?;
    for (label, fact) in limits::facts(&job.limits, &job.job, job.status, now) {
        writeln!(out, "  {label:<10} {fact}")?;
    }
    show_late(out, job)?;
    timeline::show(out, &job.timeline, now, layout.columns, layout.colour)?;
    next(out, job)
}

pub(super) fn name(name: Option<&str>, workflow: Option<&str>) -> String {
    let file = workflow.and_then(|file| file.rsplit('/').next());
    plain(name.or(file).unwrap_or_default())
}

fn counts(job: &JobView) -> String {
    summary::counts(&summary::JobNumbers {
        items: &job.items,
        attempts: job.attempts,
        retries: job.retries,
        delay: job.delay_ms.0,
        missing: job.missing_total,
        completion: limits::early(job.completion.as_ref()).is_some(),
        duration: job.duration_ms.0,
        has_ended: has_ended(job.status),
    })
}

/// The commands to type next.
fn next(out: &mut impl Write, job: &JobView) -> io::Result<()> {
    let id = &job.job;
    let ended = has_ended(job.status);
    let completed = job.status == LiveJobStatus::As(JobStatus::Completed);
    if !ended && job.paused_at.is_some() {
        writeln!(out, "  unpause: undaunted unpause {id}")?;
    }
    if !ended && job.owner.is_none() {
        writeln!(out, "  resume: undaunted resume {id}")?;
    }
    if !completed {
        writeln!(out, "  why:    undaunted explain {id}")?;
    }
    if ended && job.steps.iter().any(|step| step.dead > 0) {
        writeln!(out, "  again:  undaunted dlq redrive {id}")?;
    }
    writeln!(out, "  events: undaunted events {id}")
}

fn show_step(out: &mut impl Write, step: &StepView) -> io::Result<()> {
    let mut facts = vec![step.stage.word().replace('_', " ")];
    if step.is_map {
        facts.push(format!("{} of {} done", step.succeeded, step.items));
    }
    let many = [
        (u64::from(step.running), "running"),
        (step.waiting, "waiting"),
        (step.held.into(), "held"),
        (step.dead.into(), "dead"),
        (step.skipped.into(), "skipped"),
        (step.missing.into(), "not waited for"),
    ];
    let many = many.iter().filter(|(number, _)| *number > 0);
    facts.extend(many.map(|(number, word)| format!("{number} {word}")));
    writeln!(out, "  {:<10} {}", plain(&step.step), facts.join(", "))?;
    let named = |what: &'static str| {
        move |it: &MissingItem| format!("    {what}: {} ({})", plain(&it.item), it.reason)
    };
    let dead = step.dead_items.iter().map(named("dead"));
    let missing = step.missing_items.iter().map(named("not waited for"));
    let mut lines = dead.take(SHOWN).chain(missing.take(SHOWN));
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

fn show_held(out: &mut impl Write, job: &JobView, now: Timestamp) -> io::Result<()> {
    for held in job.held.iter().take(SHOWN) {
        let name = plain(&held.item);
        let text = holds::sentence(&job.job, &held.hold, now);
        writeln!(out, "    {name}: {text}")?;
    }
    match more(job.held_total) {
        0 => Ok(()),
        more => writeln!(out, "    … {more} more are held"),
    }
}

fn more(total: u64) -> u64 {
    total.saturating_sub(u64::try_from(SHOWN).unwrap_or(u64::MAX))
}

fn show_late(out: &mut impl Write, job: &JobView) -> io::Result<()> {
    for late in job.late.iter().take(SHOWN) {
        writeln!(out, "  late       {}", limits::of_late(late))?;
    }
    match more(job.late_total) {
        0 => Ok(()),
        more => writeln!(out, "  late       … {more} more"),
    }
}

fn show_waiting(out: &mut impl Write, of: &WaitingView, now: Timestamp) -> io::Result<()> {
    let when =
        if of.due_at.0 > now { format!("in {}", short(of.due_at.0.since(now))) } else { "now".to_owned() };
    let text = match one_line(of.error.as_deref().unwrap_or_default()).as_str() {
        "" => of.failure.clone(),
        last => format!("{}: {last}", of.failure),
    };
    let (retries, attempts) = bounds(of.retries_allowed);
    writeln!(
        out,
        "    {}: attempt {}{attempts} failed ({text}); retry {}{retries} due {when}",
        plain(&of.item),
        of.attempts,
        of.retry
    )
}
