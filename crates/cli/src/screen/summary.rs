//! The result of a job in a few lines, with the commands to type next.

use std::io::{self, Write};
use std::time::Duration;

use undaunted_engine::view::{ItemCounts, JobReport, JobStatus};

use super::limits::{decided, early};
use super::words::names;
use super::{count, plain, short};

pub(crate) fn show(out: &mut impl Write, report: &JobReport) -> io::Result<()> {
    let job = &report.job;
    let reason = match report.reason {
        // Not "cancelled (cancelled)".
        Some(reason) if reason.word() != report.status.word() => format!(" ({reason})"),
        _ => String::new(),
    };
    writeln!(out, "job {job} {}{reason}", status(report))?;
    if let Some(error) = &report.error {
        let label = match report.status {
            JobStatus::Failed | JobStatus::Partial | JobStatus::Cancelled => "error",
            _ => "note",
        };
        for (number, line) in error_lines(error).iter().enumerate() {
            let label = if number == 0 { label } else { "     " };
            let mark = if number == 0 { ":" } else { " " };
            writeln!(out, "  {label}{mark} {line}")?;
        }
    }
    writeln!(out, "  {}", counts(&counted(report)))?;
    not_waited_for(out, report)?;
    match report.status {
        JobStatus::Suspended | JobStatus::Running | JobStatus::Stopping => {
            writeln!(out, "  resume: undaunted resume {job}")
        }
        JobStatus::Failed | JobStatus::Partial if report.items.dead > 0 => {
            writeln!(out, "  why:    undaunted explain {job}")?;
            writeln!(out, "  again:  undaunted dlq redrive {job}")
        }
        JobStatus::Failed | JobStatus::Partial | JobStatus::Cancelled => {
            writeln!(out, "  why:    undaunted explain {job}")
        }
        JobStatus::Completed => Ok(()),
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

fn not_waited_for(out: &mut impl Write, report: &JobReport) -> io::Result<()> {
    const SHOWN: usize = 10;
    let Some(completion) = early(report.completion.as_ref()) else {
        return Ok(());
    };
    let (reason, decided) = (&completion.reason, decided(completion));
    let missing = &report.missing;
    if missing.is_empty() {
        return writeln!(out, "  {reason}: {decided}");
    }
    let total = u64::try_from(missing.len()).unwrap_or(u64::MAX);
    let names = names(missing.iter().map(|missing| plain(&missing.item)), SHOWN, total);
    writeln!(out, "  {reason}: {decided}; not waited for: {names}")
}

/// `completion`: whether a completion rule decided.
pub(super) const fn partial(completion: bool) -> &'static str {
    if completion { "completed below its minimum" } else { "completed with dead letters" }
}

fn status(report: &JobReport) -> &'static str {
    match report.status {
        JobStatus::Partial => partial(early(report.completion.as_ref()).is_some()),
        status => status.word(),
    }
}
pub(super) struct JobNumbers<'c> {
    pub(super) items: &'c ItemCounts,
    pub(super) attempts: u64,
    pub(super) retries: u64,
    pub(super) delay: Duration,
    pub(super) missing: u64,
    /// Whether a completion rule decided.
    pub(super) completion: bool,
    pub(super) duration: Duration,
    pub(super) has_ended: bool,
}

fn counted(report: &JobReport) -> JobNumbers<'_> {
    let has_ended = match report.status {
        JobStatus::Completed | JobStatus::Partial | JobStatus::Failed | JobStatus::Cancelled => true,
        JobStatus::Running | JobStatus::Stopping | JobStatus::Suspended => false,
    };
    JobNumbers {
        items: &report.items,
        attempts: report.attempts,
        retries: report.retries,
        delay: report.delay_ms.0,
        missing: u64::try_from(report.missing.len()).unwrap_or(u64::MAX),
        completion: early(report.completion.as_ref()).is_some(),
        duration: report.duration_ms.0,
        has_ended,
    }
}

/// `3 of 5 items succeeded, 1 dead letter; 9 attempts, 4 retries, 7s of delays; took 12s`
pub(super) fn counts(of: &JobNumbers<'_>) -> String {
    let mut items =
        vec![format!("{} of {} succeeded", of.items.succeeded, count(of.items.total, "item", "items"))];
    if of.items.dead > 0 {
        items.push(count(of.items.dead, "dead letter", "dead letters"));
    }
    if of.items.skipped > 0 {
        items.push(format!("{} skipped", of.items.skipped));
    }
    if of.missing > 0 {
        let what = if of.completion { "not waited for" } else { "never started" };
        items.push(format!("{} {what}", of.missing));
    }
    let delays = match of.retries {
        0 => String::new(),
        retries => format!(", {}, {} of delays", count(retries, "retry", "retries"), short(of.delay)),
    };
    let took = if of.has_ended { format!("; took {}", short(of.duration)) } else { String::new() };
    format!("{}; {}{delays}{took}", items.join(", "), count(of.attempts, "attempt", "attempts"))
}
