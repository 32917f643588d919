//! The limits that items of a job share: pool, breakers, completion rule, tolerance, deadlines. Used by `show`
//! and `explain`.

use undaunted_engine::event::CompletionReached;
use undaunted_engine::job::StepState;
use undaunted_engine::view::{
    BestEffortView, CompletionView, JobStatus, LateView, LiveJobStatus, PoolView, SharedLimits,
    ToleranceView, rfc3339,
};
use undaunted_policy::{Timestamp, Tolerance};

use super::{breakers, count, plain, short};

/// The items a step completed without: those that were cut off, and those never started.
pub(super) fn missing(state: &StepState) -> u32 {
    let never = if state.reached.is_some() { state.pending() } else { 0 };
    state.missing.saturating_add(never)
}

pub(super) const fn has_ended(status: LiveJobStatus) -> bool {
    matches!(
        status,
        LiveJobStatus::As(
            JobStatus::Completed | JobStatus::Partial | JobStatus::Failed | JobStatus::Cancelled
        )
    )
}

/// The limits a job has, each with its label.
pub(super) fn facts(
    limits: &SharedLimits,
    job: &str,
    status: LiveJobStatus,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let has_ended = has_ended(status);
    let mut facts = Vec::new();
    if let Some(pool) = &limits.pool {
        facts.push(("pool", of_pool(pool, job)));
    }
    for breaker in &limits.breakers {
        let held = match breaker.held {
            0 => String::new(),
            held => format!("; holds {} of this job", count(held, "item", "items")),
        };
        let status = breakers::sentence(&breaker.view, now);
        let name = plain(&breaker.view.breaker);
        facts.push(("breaker", format!("{name}: {status}{held}")));
    }
    // A step that waits for all of its items has nothing to say here that the counts do not.
    if let Some(rule) = limits.best_effort.as_ref().filter(|rule| rule.enabled) {
        facts.push(("completion", of_rule(rule, has_ended, now)));
    }
    if let Some(tolerance) = &limits.tolerance {
        facts.push(("tolerance", of_tolerance(tolerance)));
    }
    if let Some(deadline) = of_deadline(limits, has_ended, now) {
        facts.push(("deadline", deadline));
    }
    facts
}

fn of_pool(pool: &PoolView, job: &str) -> String {
    let more = if pool.used >= pool.total && pool.total < pool.maximum {
        format!("; add more: undaunted budget top-up {job} N")
    } else {
        String::new()
    };
    let total = count(pool.total, "retry", "retries");
    format!("{} of {total} used, at most {} per item{more}", pool.used, pool.per_item)
}

fn of_rule(rule: &BestEffortView, has_ended: bool, now: Timestamp) -> String {
    let Some(completion) = &rule.completion else {
        let until = match rule.deadline {
            Some(deadline) if deadline.0 > now && !has_ended => {
                format!("by {deadline} (in {})", short(deadline.0.since(now)))
            }
            Some(deadline) => format!("by {deadline}"),
            None => return "the step has not started".to_owned(),
        };
        let reported = rule.completed.saturating_add(rule.failed);
        let open = rule.target.saturating_sub(reported);
        return format!(
            "{} of {} must succeed {until}: {} succeeded, {} failed, {open} pending",
            rule.min_dcs,
            count(rule.target, "item", "items"),
            rule.completed,
            rule.failed
        );
    };
    let open = if rule.on_complete == "leave" && rule.open > 0 {
        "; results of items still running will be late"
    } else {
        ""
    };
    format!("{}: {}{open}", completion.reason, outcome(completion))
}

/// The decision of a rule that may complete its step early: only that needs an explanation.
pub(super) fn early(completion: Option<&CompletionView>) -> Option<&CompletionView> {
    completion.filter(|completion| completion.best_effort)
}

pub(super) fn outcome_of(reached: &CompletionReached) -> String {
    outcome(&CompletionView::of(reached))
}

/// The decision of a completion rule: `3 of 5 succeeded, 3 required; 2 not waited for`.
fn outcome(completion: &CompletionView) -> String {
    let decided = decided(completion);
    match completion.missing {
        0 => decided,
        missing => format!("{decided}; {missing} not waited for"),
    }
}

/// Like [`outcome`], without the missing items.
pub(super) fn decided(completion: &CompletionView) -> String {
    let CompletionView { completed, target, min, .. } = completion;
    let failed = match completion.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    match completion.why {
        "all_dcs_reported" => format!("all {target} reported: {completed} succeeded{failed}, {min} required"),
        "min_dcs_reached" => format!("{completed} of {target} succeeded{failed}, {min} required"),
        _ => format!("deadline passed: {completed} of {target} succeeded{failed}, {min} required"),
    }
}

fn of_tolerance(tolerance: &ToleranceView) -> String {
    let ToleranceView { settled, failed, .. } = *tolerance;
    let mut parts = Vec::new();
    if let Some(most) = tolerance.max_failures {
        let left = most.max(1).saturating_sub(failed);
        parts.push(match left {
            0 => format!("{failed} failed, stops at {most}"),
            left => format!("{failed} failed, stops at {most} ({left} more)"),
        });
    }
    if let Some(share) = tolerance.failure_threshold {
        let so_far = format!("{failed} of {settled} settled items failed");
        let early = if settled < Tolerance::ENOUGH {
            format!(", once {} are settled", Tolerance::ENOUGH)
        } else {
            String::new()
        };
        let share = percent(share);
        parts.push(format!("{so_far}, stops above {share}{early}"));
    }
    if tolerance.exceeded {
        parts.push("exceeded".to_owned());
    }
    parts.join("; ")
}

/// `12.5%` or `12%`.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

fn of_deadline(limits: &SharedLimits, has_ended: bool, now: Timestamp) -> Option<String> {
    let each = limits.item_deadline_ms;
    let each = each.map(|limit| format!("each item has {} from its first start", short(limit.0)));
    let whole = limits.deadline.map(|deadline| {
        let left = match deadline.0 > now {
            _ if has_ended => String::new(),
            true => format!(", in {}", short(deadline.0.since(now))),
            false => format!(", {} ago", short(now.since(deadline.0))),
        };
        format!("{deadline}{left}")
    });
    match (whole, each) {
        (Some(whole), Some(each)) => Some(format!("{whole}; {each}")),
        (whole, each) => whole.or(each),
    }
}

pub(super) fn of_late(late: &LateView) -> String {
    format!("{} {}", plain(&late.item), late_words(late))
}

/// `succeeded at …, not counted (log_only)`
pub(super) fn late_words(late: &LateView) -> String {
    let reason = late.reason.map(|reason| format!(" ({reason})"));
    let counted = match late.policy {
        "update_result" => "counted (update_result)",
        _ => "not counted (log_only)",
    };
    let result = late.result;
    format!("{result}{} at {}, {counted}", reason.unwrap_or_default(), rfc3339(late.at.0))
}
