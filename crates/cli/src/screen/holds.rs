//! Held items: the breaker, since when, its next probe, and what follows.

use std::time::Duration;

use serde::Serialize;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::job::Job;
use undaunted_engine::view::{Holding, rfc3339};
use undaunted_policy::{Phase, Reason, Timestamp};

use super::breakers::sentence as breaker_sentence;
use super::duration::{measured, short};
use super::words::{count, plain, quoted};

#[derive(Serialize)]
pub(super) struct HoldingJson {
    breaker: String,
    state: Option<&'static str>,
    since: String,
    until: Option<String>,
    expires_at: Option<String>,
    attempts_left: Option<u64>,
    goes_first: bool,
}

pub(super) fn json(breakers: &AdmissionControl, of: &Holding) -> HoldingJson {
    let state = breakers.get(&of.breaker);
    HoldingJson {
        breaker: of.breaker.clone(),
        state: state.map(undaunted_engine::breaker::BreakerState::word),
        since: rfc3339(of.since),
        until: of.until.map(rfc3339),
        expires_at: of.expires.map(rfc3339),
        attempts_left: of.left,
        goes_first: of.goes_first,
    }
}

/// `held by api for 12s`
pub(super) fn shortly(of: &Holding, now: Timestamp) -> String {
    format!(
        "held by {} for {}",
        plain(&of.breaker),
        whole(of.since, now)
    )
}

/// `held by api for 12s; it looks again in 40s; 3 attempts left`
pub(super) fn sentence(
    job: &Job,
    breakers: &AdmissionControl,
    of: &Holding,
    now: Timestamp,
) -> String {
    let mut said = vec![shortly(of, now), looks(job, breakers, &of.breaker, now)];
    if of.goes_first {
        said.push("this one goes first".to_owned());
    }
    said.push(left(of.left));
    if let Some(expires) = of.expires {
        said.push(format!(
            "fails if it is held for {} more",
            whole(now, expires)
        ));
    }
    said.join("; ")
}

/// From one instant to another, in whole seconds if there are any.
fn whole(from: Timestamp, to: Timestamp) -> String {
    let time = to.since(from);
    match time.as_secs() {
        0 => measured(time),
        seconds => short(Duration::from_secs(seconds)),
    }
}

/// When a breaker looks again: `it looks again in 40s`.
pub(super) fn looks(
    job: &Job,
    breakers: &AdmissionControl,
    breaker: &str,
    now: Timestamp,
) -> String {
    let Some(state) = breakers.get(breaker) else {
        return "how it stands is not known".to_owned();
    };
    match state.breaker.phase() {
        Phase::Open { until, .. } if until > now => {
            format!("it looks again in {}", ahead(until.since(now)))
        }
        Phase::HalfOpen { probing: true, .. } => match &state.probe {
            Some(probe) if probe.job != job.id() => {
                format!("a probe of job {} is under way", probe.job)
            }
            Some(_) | None => "a probe is under way".to_owned(),
        },
        Phase::Open { .. } | Phase::HalfOpen { .. } => "it lets the next one through".to_owned(),
        Phase::Closed { .. } => "it has closed, and lets them go one by one".to_owned(),
    }
}

/// Whole seconds, rounded up, so that a countdown does not end early.
pub(super) fn ahead(time: Duration) -> String {
    let more = u64::from(time.subsec_nanos() > 0);
    short(Duration::from_secs(time.as_secs().saturating_add(more)))
}

fn left(left: Option<u64>) -> String {
    match left {
        Some(left) => format!("{} left", count(left, "attempt", "attempts")),
        None => "any number of attempts left".to_owned(),
    }
}

pub(super) fn story(
    job: &Job,
    breakers: &AdmissionControl,
    of: &Holding,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![("since", rfc3339(of.since))];
    if let Some(state) = breakers.get(&of.breaker) {
        facts.push(("breaker", breaker_sentence(state, now)));
        facts.push(("then", then(job, of, state.breaker.phase())));
    }
    facts.push((
        "attempts",
        match of.left {
            Some(left) => format!("{left} left; a hold uses none of them, and no budget"),
            None => "any number; a hold uses no budget".to_owned(),
        },
    ));
    if let Some(expires) = of.expires {
        let active = job.active(of.item);
        let deadline = active.and_then(|active| job.deadline_of(of.item.step, active));
        let reason = if deadline == Some(expires) {
            Reason::Deadline
        } else {
            Reason::CircuitOpen
        };
        let in_time = if expires > now {
            format!(" in {}", ahead(expires.since(now)))
        } else {
            String::new()
        };
        facts.push((
            "expires",
            format!(
                "{}: held until then it fails{in_time} ({reason})",
                rfc3339(expires)
            ),
        ));
    }
    let reset = format!("undaunted breaker reset {}", quoted(&of.breaker));
    facts.push(("by hand", reset));
    facts
}

/// What happens to the item when the breaker half opens.
fn then(job: &Job, of: &Holding, phase: Phase) -> String {
    if matches!(phase, Phase::Closed { .. }) {
        return "it goes on in its turn; what was held is let go one after the other".to_owned();
    }
    if of.goes_first && matches!(phase, Phase::HalfOpen { probing: true, .. }) {
        return "it is the next to find out, when the probe that is under way has ended".to_owned();
    }
    if of.goes_first {
        return "it goes first, to find out whether the target is back".to_owned();
    }
    match undaunted_engine::view::prober(job, &of.breaker) {
        Some(first) => format!(
            "{} goes first, to find out; this one goes on when the breaker has closed",
            plain(job.identity(first))
        ),
        None => "it goes on when the breaker has closed".to_owned(),
    }
}
