//! A schedule of retries, as a table and as JSON.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use undaunted_engine::view::DelayView;
use undaunted_policy::{PlannedRetry, Reason};

use super::{count, plain, short};
use crate::commands::schedule::RetryPlan;

const BAR: usize = 30;

/// One object, written piece by piece so that a schedule of a million retries takes no memory.
pub(crate) fn json(out: &mut impl Write, mut plan: RetryPlan) -> io::Result<()> {
    let allowed = plan.policy.bound().executions();
    write!(out, "{{\"attempts_allowed\":")?;
    serde_json::to_writer(&mut *out, &allowed)?;
    write!(out, ",\"retries\":[")?;
    let mut made = 0_u32;
    while made < plan.most
        && let Some(planned) = plan.schedule.next()
    {
        if made > 0 {
            write!(out, ",")?;
        }
        serde_json::to_writer(&mut *out, &RetryJson::of(&planned))?;
        made = planned.retry;
    }
    // The schedule reports its end only when asked for one retry more.
    let _ = plan.schedule.next();
    let stops = StopsJson { reason: plan.schedule.stopped().map(Reason::word), after_retries: made };
    write!(out, "],\"stops\":")?;
    serde_json::to_writer(&mut *out, &stops)?;
    writeln!(out, "}}")
}

#[derive(Serialize)]
struct RetryJson {
    retry: u32,
    computed_ms: DelayView,
    capped_ms: DelayView,
    delay_ms: DelayView,
    spent_ms: DelayView,
}

impl RetryJson {
    fn of(planned: &PlannedRetry) -> Self {
        Self {
            retry: planned.retry,
            computed_ms: DelayView(planned.delay.computed),
            capped_ms: DelayView(planned.delay.capped),
            delay_ms: DelayView(planned.delay.drawn),
            spent_ms: DelayView(planned.spent),
        }
    }
}

#[derive(Serialize)]
struct StopsJson {
    reason: Option<&'static str>,
    after_retries: u32,
}

pub(crate) fn table(out: &mut impl Write, mut plan: RetryPlan, colour: bool) -> io::Result<()> {
    let wanted = usize::try_from(plan.most).unwrap_or(usize::MAX);
    let retries: Vec<PlannedRetry> = plan.schedule.by_ref().take(wanted).collect();
    let longest = retries.iter().map(|planned| planned.delay.drawn).max();
    if let Some(command) = &plan.command {
        writeln!(out, "command {}", plain(command))?;
    }
    if let Some(longest) = longest {
        writeln!(out, "{:>5}  {:>9}  {:>9}  {:>9}  {:>9}", "retry", "computed", "capped", "delay", "spent")?;
        for planned in &retries {
            let bar = bar(planned.delay.drawn, longest);
            let (start, end) = if colour { ("\u{1b}[36m", "\u{1b}[0m") } else { ("", "") };
            writeln!(
                out,
                "{:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {start}{bar}{end}",
                planned.retry,
                short(planned.delay.computed),
                short(planned.delay.capped),
                short(planned.delay.drawn),
                short(planned.spent),
            )?;
        }
    }
    let _ = plan.schedule.next();
    let made = count(retries.len(), "retry", "retries");
    let attempts = count(retries.len().saturating_add(1), "attempt", "attempts");
    match plan.schedule.stopped() {
        Some(Reason::Attempts) if retries.is_empty() => {
            writeln!(out, "runs once, without retries")
        }
        Some(reason) => {
            writeln!(out, "stops after {made} ({attempts}): {}", why(reason, &plan))
        }
        None => writeln!(out, "unlimited; these are the first {made} (use `--retries` to show more)"),
    }
}

fn why(reason: Reason, plan: &RetryPlan) -> String {
    let limits = plan.policy.terms().limits();
    match (reason, limits.retry_budget(), limits.deadline()) {
        (Reason::RetryBudget, Some(budget), _) => {
            format!("the next delay would exceed the retry budget of {}", short(budget))
        }
        (Reason::Deadline, _, Some(deadline)) => {
            format!("the next retry would be due after the deadline of {}", short(deadline))
        }
        (Reason::Attempts, ..) => "all attempts used".to_owned(),
        (reason, ..) => reason.sentence().to_owned(),
    }
}

/// In proportion to the longest delay; every delay above zero is visible.
fn bar(wait: Duration, longest: Duration) -> String {
    let eighths = wait.as_nanos().saturating_mul(8 * BAR as u128) / longest.as_nanos().max(1);
    let eighths = usize::try_from(eighths).unwrap_or(8 * BAR).max(usize::from(!wait.is_zero()));
    let partial = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8).copied().unwrap_or_default();
    format!("{}{partial}", "█".repeat(eighths / 8))
}
