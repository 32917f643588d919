//! What the items of a job share: pool, breakers, completion rule, tolerance, deadlines. `show` and `explain`
//! say the same of them, as text and as JSON.

use serde_json::{Map, Value, json};
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::event::{Reached, Why};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{Job, StepState};
use undaunted_engine::view::history::LateEnd;
use undaunted_engine::view::{
    BestEffort, Tolerated, best_effort, best_effort_names, rfc3339, tolerated,
};
use undaunted_policy::{Pool, Reason, Timestamp, Tolerance};

use super::breakers;
use super::duration::{millis, short};
use super::words::{count, plain};

/// An item that ended after its step was complete without it.
pub(crate) type Late = (ItemId, LateEnd);

/// How many items a step was complete without: those that were cut off, and those never started.
pub(super) fn missing(state: &StepState) -> u32 {
    let never = if state.reached.is_some() {
        state.pending()
    } else {
        0
    };
    state.missing.saturating_add(never)
}

/// One fact a line, with its label. What a job does not have is left out.
pub(super) fn facts(
    job: &Job,
    known: &AdmissionControl,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(pool) = job.pool {
        facts.push(("pool", of_pool(job, pool)));
    }
    for name in known.names() {
        if let Some(state) = known.get(name) {
            let held = match job.held_by(name) {
                0 => String::new(),
                held => format!("; holds {} of this job", count(held, "item", "items")),
            };
            let stands = breakers::sentence(state, now);
            facts.push(("breaker", format!("{}: {stands}{held}", plain(name))));
        }
    }
    if let Some(rule) = best_effort(job) {
        facts.push(("completion", of_rule(job, &rule, now)));
    }
    if let Some(tolerated) = tolerated(job) {
        facts.push(("tolerance", of_tolerance(&tolerated)));
    }
    if let Some(deadline) = of_deadline(job, now) {
        facts.push(("deadline", deadline));
    }
    facts
}

fn of_pool(job: &Job, pool: Pool) -> String {
    let Pool { limits, consumed } = pool;
    let more = if consumed >= limits.total && limits.total < job.ceilings().max_total {
        format!("; allow more: undaunted budget top-up {} N", job.id())
    } else {
        String::new()
    };
    format!(
        "{consumed} of {} retries used, at most {} by one item{more}",
        limits.total, limits.per_item
    )
}

fn of_rule(job: &Job, rule: &BestEffort, now: Timestamp) -> String {
    let Some(reached) = rule.reached else {
        let until = match rule.deadline {
            Some(deadline) if deadline > now && !job.stage.has_ended() => {
                let (at, left) = (rfc3339(deadline), short(deadline.since(now)));
                format!("by {at} (in {left})")
            }
            Some(deadline) => format!("by {}", rfc3339(deadline)),
            None => return "the step has not begun".to_owned(),
        };
        let reported = rule.completed.saturating_add(rule.failed);
        let open = rule.target.saturating_sub(reported);
        return format!(
            "{} of {} to succeed {until}: {} did, {} failed, {open} to come",
            rule.min,
            count(rule.target, "item", "items"),
            rule.completed,
            rule.failed
        );
    };
    let state = job.step(rule.step);
    let open = match state.filter(|state| rule.leaves && state.is_busy()) {
        Some(_) => "; what still runs goes on and comes late",
        None => "",
    };
    let reason = reached.completion().reason;
    format!("{reason}: {}{open}", outcome(&reached))
}

/// The decision of a completion rule: `3 of 5 are enough; 2 not waited for`.
pub(super) fn outcome(reached: &Reached) -> String {
    let reported = reached.completed.saturating_add(reached.failed);
    let decided = decided(reached);
    match reached.target.saturating_sub(reported) {
        0 => decided,
        missing => format!("{decided}; {missing} not waited for"),
    }
}

/// As [`outcome`], without the missing items.
pub(super) fn decided(reached: &Reached) -> String {
    let Reached {
        completed,
        failed,
        target,
        min,
        ..
    } = *reached;
    let failed = match failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    match (reached.why, reached.success) {
        (Why::AllReported, true) => {
            format!("all {target} reported, {completed} succeeded{failed}; {min} were enough")
        }
        (Why::AllReported, false) => {
            format!("all {target} reported, {completed} succeeded{failed}; {min} had to")
        }
        (Why::MinReached, _) => format!("{completed} of {target} are enough{failed}"),
        (Why::DeadlineExpired, _) => {
            format!("time is up, {completed} of {min} needed succeeded{failed}")
        }
    }
}

fn of_tolerance(tolerated: &Tolerated) -> String {
    let Tolerated {
        tolerance,
        settled,
        failed,
        exceeded,
    } = *tolerated;
    let mut said = Vec::new();
    if let Some(most) = tolerance.max_failures {
        let left = most.max(1).saturating_sub(failed);
        said.push(match left {
            0 => format!("{failed} failed, it stops at {most}"),
            left => format!("{failed} failed, it stops at {most} ({left} more)"),
        });
    }
    if let Some(share) = tolerance.failure_threshold {
        let so_far = format!("{failed} of {settled} settled failed");
        let early = if settled < Tolerance::ENOUGH {
            format!(", once {} are settled", Tolerance::ENOUGH)
        } else {
            String::new()
        };
        let share = percent(share);
        said.push(format!("{so_far}, it stops above {share}{early}"));
    }
    if exceeded {
        said.push("that was too many".to_owned());
    }
    said.join("; ")
}

/// `12.5%`, without a needless zero.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

fn of_deadline(job: &Job, now: Timestamp) -> Option<String> {
    let steps = StepId::all().zip(&job.steps);
    let mut limits = steps.filter_map(|(step, _)| job.item_limit(step));
    let each = limits
        .next()
        .map(|limit| format!("each item has {} from its first start", short(limit)));
    let whole = job.deadline().map(|deadline| {
        let left = match deadline > now {
            _ if job.stage.has_ended() => String::new(),
            true => format!(", in {}", short(deadline.since(now))),
            false => format!(", {} ago", short(now.since(deadline))),
        };
        format!("{}{left}", rfc3339(deadline))
    });
    match (whole, each) {
        (Some(whole), Some(each)) => Some(format!("{whole}; {each}")),
        (whole, each) => whole.or(each),
    }
}

pub(super) fn of_late(job: &Job, (place, late): &Late) -> String {
    let name = plain(job.identity(*place));
    format!("{name} {}", late_words(late))
}

/// `succeeded at …, not counted (log_only)`
pub(super) fn late_words(late: &LateEnd) -> String {
    let result = match late.reason {
        None => "succeeded".to_owned(),
        Some(reason) => format!("failed ({reason})"),
    };
    let counted = if late.counted {
        "and counts (update_result)"
    } else {
        "and does not count (log_only)"
    };
    format!("{result} at {}, {counted}", rfc3339(late.at))
}

pub(super) fn json(job: &Job, known: &AdmissionControl) -> Map<String, Value> {
    let breakers = known.names().filter_map(|name| {
        let mut shown = breakers::machine(name, known.get(name)?);
        if let Value::Object(fields) = &mut shown {
            fields.insert("held".to_owned(), job.held_by(name).into());
        }
        Some(shown)
    });
    let rule = best_effort(job).map(|rule| json!(best_effort_names(job, &rule)));
    let tolerance = tolerated(job).map(|tolerated| {
        json!({
            "max_failures": tolerated.tolerance.max_failures,
            "failure_threshold": tolerated.tolerance.failure_threshold,
            "settled": tolerated.settled,
            "failed": tolerated.failed,
            "exceeded": tolerated.exceeded,
        })
    });
    let steps = StepId::all().zip(&job.steps);
    let mut limits = steps.filter_map(|(step, _)| job.item_limit(step));
    let limit = limits.next();
    let fields = [
        (
            "pool",
            job.pool.map_or(Value::Null, |pool| {
                json!({
                    "total": pool.limits.total, "used": pool.consumed,
                    "per_item": pool.limits.per_item,
                })
            }),
        ),
        ("breakers", breakers.collect()),
        ("best_effort", rule.unwrap_or_default()),
        ("tolerance", tolerance.unwrap_or_default()),
        ("deadline", job.deadline().map(rfc3339).into()),
        ("item_deadline_ms", limit.map(millis).into()),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    fields.into_iter().collect()
}

pub(super) fn late_list(job: &Job, late: &[Late]) -> Vec<Value> {
    let named = late.iter().map(|(place, late)| {
        let mut shown = late_json(late);
        if let Value::Object(fields) = &mut shown {
            fields.insert("item".to_owned(), job.identity(*place).into());
        }
        shown
    });
    named.collect()
}

pub(super) fn late_json(late: &LateEnd) -> Value {
    json!({
        "at": rfc3339(late.at),
        "result": if late.reason.is_none() { "succeeded" } else { "failed" },
        "reason": late.reason.map(Reason::word),
        "policy": if late.counted { "update_result" } else { "log_only" },
    })
}
