//! A job: why it has its status, and the items to explain next.

use std::io::{self, Write};

use undaunted_engine::view::{JobExplanation, JobStatus, LiveJobStatus};
use undaunted_policy::{Reason, Timestamp};

use super::standing::Standing;
use crate::screen::job::name;
use crate::screen::limits::{self, has_ended};
use crate::screen::summary::{self, JobNumbers};
use crate::screen::words::names;
use crate::screen::{error_lines, one_line, plain};

const SHOWN: usize = 5;

pub(crate) fn show(out: &mut impl Write, view: &JobExplanation, now: Timestamp) -> io::Result<()> {
    let name = name(view.name.as_deref(), view.workflow.as_deref());
    writeln!(out, "job {}  {name}", view.job)?;
    writeln!(out, "  {}", sentence(view))?;
    writeln!(out, "  {}", counts(view))?;
    if let Some(error) = &view.error {
        writeln!(out, "  first failure  {}", error_lines(error).join("\n                 "))?;
    }
    if view.limits.pool.is_none() {
        writeln!(out, "  pool           none; only the limits of each command apply")?;
    }
    for (label, fact) in limits::facts(&view.limits, &view.job, view.status, now) {
        writeln!(out, "  {label:<14} {fact}")?;
    }
    not_waited_for(out, view)?;
    for late in view.late.iter().take(SHOWN) {
        writeln!(out, "  late           {}", limits::of_late(late))?;
    }
    for look in &view.look {
        let standing = Standing::of_look(&view.job, view.status, look);
        writeln!(out, "\n  {}: {}", plain(&look.item), standing.sentence(now))?;
        if let Some(error) = &look.error {
            writeln!(out, "    {}", one_line(error))?;
        }
        writeln!(out, "    {}", look.explain)?;
    }
    more(out, view)
}

fn counts(view: &JobExplanation) -> String {
    let items = undaunted_engine::view::ItemCounts {
        total: view.items.total,
        succeeded: view.items.succeeded,
        dead: view.items.dead,
        skipped: view.items.skipped,
    };
    summary::counts(&JobNumbers {
        items: &items,
        attempts: view.attempts,
        retries: view.retries,
        delay: view.delay_ms.0,
        missing: view.missing_total,
        completion: limits::early(view.completion.as_ref()).is_some(),
        duration: view.duration_ms.0,
        has_ended: has_ended(view.status),
    })
}

fn more(out: &mut impl Write, view: &JobExplanation) -> io::Result<()> {
    let named = u64::try_from(SHOWN).unwrap_or(u64::MAX);
    let counts = [
        (view.items.dead, "dead letters", "undaunted dlq ls"),
        (view.items.waiting, "waiting", "undaunted show"),
        (view.items.held, "held", "undaunted show"),
    ];
    for (many, what, look) in counts {
        let left = many.saturating_sub(named);
        if left > 0 {
            writeln!(out, "\n  … and {left} more {what}: {look} {}", view.job)?;
        }
    }
    Ok(())
}

fn sentence(view: &JobExplanation) -> String {
    let because = match (view.reason, limits::early(view.completion.as_ref())) {
        (Some(reason), Some(completion)) if !completion.success => {
            format!(" ({reason}): {}", limits::decided(completion))
        }
        (Some(reason), _) => format!(" ({reason}): {}", reason.sentence()),
        (None, _) => String::new(),
    };
    let resume = format!("resume with `undaunted resume {}`", view.job);
    match view.status {
        LiveJobStatus::As(JobStatus::Running) => {
            let owner = view.owner.map(|owner| format!(" in process {owner}"));
            format!("running{}", owner.unwrap_or_default())
        }
        LiveJobStatus::Interrupted => format!("interrupted: its process died; {resume}"),
        LiveJobStatus::As(JobStatus::Suspended) => format!("suspended; {resume}"),
        LiveJobStatus::As(JobStatus::Stopping) => format!("stopping{because}; waiting for running commands"),
        LiveJobStatus::As(JobStatus::Partial) => {
            let what = summary::partial(limits::early(view.completion.as_ref()).is_some());
            format!("{what}{because}")
        }
        LiveJobStatus::Paused
        | LiveJobStatus::Unreadable
        | LiveJobStatus::As(JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled) => {
            format!("{}{because}", view.status.word())
        }
    }
}

fn not_waited_for(out: &mut impl Write, view: &JobExplanation) -> io::Result<()> {
    if view.missing.is_empty() {
        return Ok(());
    }
    let label = match limits::early(view.completion.as_ref()) {
        Some(_) => "not waited for",
        None => "never started ",
    };
    let named = view.missing.iter().map(|missing| match missing.reason {
        Reason::Tolerance | Reason::Cancelled | Reason::Deadline => {
            format!("{} ({})", plain(&missing.item), missing.reason)
        }
        // The reason of the command that failed before it.
        _ => plain(&missing.item),
    });
    writeln!(out, "  {label} {}", names(named, SHOWN, view.missing_total))
}
