//! The result of a job in a few lines: what happened, and what to type next.

use std::io::{self, Write};

use undaunted_engine::view::{Report, Status};

use super::duration::short;
use super::limits::decided;
use super::words::{count, plain};

pub(crate) fn show(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let job = &report.job;
    let reason = match report.reason {
        // "cancelled (cancelled)" says nothing new.
        Some(reason) if reason.word() != report.status.word() => format!(" ({reason})"),
        _ => String::new(),
    };
    writeln!(out, "job {job} {}{reason}", status(report))?;
    if let Some(error) = &report.error {
        let label = match report.status {
            Status::Failed | Status::Partial | Status::Cancelled => "error",
            _ => "note",
        };
        for (number, line) in error_lines(error).iter().enumerate() {
            let label = if number == 0 { label } else { "     " };
            let mark = if number == 0 { ":" } else { " " };
            writeln!(out, "  {label}{mark} {line}")?;
        }
    }
    writeln!(out, "  {}", counts(report))?;
    not_waited_for(out, report)?;
    match report.status {
        Status::Suspended | Status::Running | Status::Stopping => {
            writeln!(out, "  go on:  undaunted resume {job}")
        }
        Status::Failed | Status::Partial if report.counts.dead > 0 => {
            writeln!(out, "  why:    undaunted explain {job}")?;
            writeln!(out, "  again:  undaunted dlq redrive {job}")
        }
        Status::Failed | Status::Partial | Status::Cancelled => {
            writeln!(out, "  why:    undaunted explain {job}")
        }
        Status::Completed => Ok(()),
    }
}

/// The lines of an error as text: at most a screen, no line longer than a paragraph, and without control
/// characters.
pub(super) fn error_lines(error: &str) -> Vec<String> {
    const LINES: usize = 10;
    const LONGEST: usize = 500;
    let mut lines: Vec<String> = error
        .lines()
        .take(LINES)
        .map(|line| {
            let line = plain(line);
            match line.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
                None => line,
            }
        })
        .collect();
    if error.lines().nth(LINES).is_some() {
        lines.push("…".to_owned());
    }
    lines
}

fn not_waited_for(out: &mut impl Write, report: &Report) -> io::Result<()> {
    const NAMED: usize = 10;
    let Some(reached) = &report.reached else {
        return Ok(());
    };
    let (reason, decided) = (reached.completion().reason, decided(reached));
    let missing = &report.missing;
    if missing.is_empty() {
        return writeln!(out, "  {reason}: {decided}");
    }
    let names = missing.iter().take(NAMED);
    let names: Vec<String> = names.map(|missing| plain(&missing.item)).collect();
    let more = match missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.join(", ");
    writeln!(out, "  {reason}: {decided}; not waited for: {names}{more}")
}

pub(super) const fn status(report: &Report) -> &'static str {
    match report.status {
        Status::Partial if report.reached.is_some() => "completed below its minimum",
        Status::Partial => "completed with dead letters",
        Status::Cancelled => "was cancelled",
        status => status.word(),
    }
}

/// `3 of 5 items succeeded, 1 dead letter; 9 attempts, 4 retries, 7s of delays; took 12s`
pub(super) fn counts(report: &Report) -> String {
    let counts = &report.counts;
    let mut items = vec![format!(
        "{} of {} succeeded",
        counts.succeeded,
        count(counts.total, "item", "items")
    )];
    if counts.dead > 0 {
        items.push(count(counts.dead, "dead letter", "dead letters"));
    }
    if counts.skipped > 0 {
        items.push(format!("{} skipped", counts.skipped));
    }
    if !report.missing.is_empty() {
        let what = match report.reached {
            Some(_) => "not waited for",
            None => "never started",
        };
        items.push(format!("{} {what}", report.missing.len()));
    }
    let delays = match counts.retries {
        0 => String::new(),
        retries => format!(
            ", {}, {} of delays",
            count(retries, "retry", "retries"),
            short(counts.delay)
        ),
    };
    format!(
        "{}; {}{delays}; took {}",
        items.join(", "),
        count(counts.attempts, "attempt", "attempts"),
        short(report.duration)
    )
}
