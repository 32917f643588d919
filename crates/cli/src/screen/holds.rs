//! Held items: the breaker, since when, its next probe, and what happens then.

use std::time::Duration;

use undaunted_engine::view::{BreakerView, HoldView};
use undaunted_policy::Timestamp;

use super::breakers::sentence as breaker_sentence;
use super::{count, measured, plain, quoted, short};

/// `held by api for 12s`
pub(super) fn shortly(of: &HoldView, now: Timestamp) -> String {
    format!("held by {} for {}", plain(&of.breaker), whole(of.since.0, now))
}

/// `held by api for 12s; next probe in 40s; 3 attempts left`
pub(super) fn sentence(job: &str, of: &HoldView, now: Timestamp) -> String {
    let mut parts = vec![shortly(of, now), next_probe_of(job, of, now)];
    if of.goes_first {
        parts.push("this item probes first".to_owned());
    }
    parts.push(left(of.attempts_left));
    if let Some(expires) = of.expires_at {
        parts.push(format!("fails if held for another {}", whole(now, expires.0)));
    }
    parts.join("; ")
}

/// The time between two instants, in whole seconds from one second on.
fn whole(from: Timestamp, to: Timestamp) -> String {
    let time = to.since(from);
    match time.as_secs() {
        0 => measured(time),
        seconds => short(Duration::from_secs(seconds)),
    }
}

fn next_probe_of(job: &str, of: &HoldView, now: Timestamp) -> String {
    let state = of.state.unwrap_or_default();
    let until = of.until.map(|until| until.0);
    next_probe(job, state, until, of.probing.as_deref(), now)
}

/// The next probe of a breaker: `next probe in 40s`.
pub(super) fn next_probe(
    job: &str,
    state: &str,
    until: Option<Timestamp>,
    probing: Option<&str>,
    now: Timestamp,
) -> String {
    match (state, until, probing) {
        ("", _, _) => "breaker state unknown".to_owned(),
        ("open", Some(until), _) if until > now => {
            format!("next probe in {}", ahead(until.since(now)))
        }
        ("half_open", _, Some(other)) if other != job => {
            format!("job {other} is probing")
        }
        ("half_open", _, Some(_)) => "probing".to_owned(),
        ("closed", _, _) => "closed, releasing one at a time".to_owned(),
        (_, _, _) => "the next start is a probe".to_owned(),
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
        None => "unlimited attempts left".to_owned(),
    }
}

/// The facts of a hold, each with its label.
pub(super) fn story(
    of: &HoldView,
    breaker: Option<&BreakerView>,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![("since", of.since.to_string())];
    if let Some(breaker) = breaker {
        facts.push(("breaker", breaker_sentence(breaker, now)));
        facts.push(("then", after_probe(of, breaker)));
    }
    facts.push((
        "attempts",
        match of.attempts_left {
            Some(left) => format!("{left} left; a hold uses no attempts and no budget"),
            None => "unlimited; a hold uses no budget".to_owned(),
        },
    ));
    if let Some(expires) = of.expires_at {
        let reason = of.expires_with.unwrap_or_default();
        let in_time =
            if expires.0 > now { format!(" in {}", ahead(expires.0.since(now))) } else { String::new() };
        facts.push(("expires", format!("{expires}: fails{in_time} if still held ({reason})")));
    }
    let reset = format!("undaunted breaker reset {}", quoted(&of.breaker));
    facts.push(("release", reset));
    facts
}

/// What happens to the item at the next probe.
fn after_probe(of: &HoldView, breaker: &BreakerView) -> String {
    if breaker.state == "closed" {
        return "released in its turn; held items are released one at a time".to_owned();
    }
    if of.goes_first && breaker.probe.is_some() {
        return "probes next, when the running probe ends".to_owned();
    }
    if of.goes_first {
        return "probes first, to check whether the target is back".to_owned();
    }
    match &of.first {
        Some(first) => {
            format!("{} probes first; this item is released when the breaker closes", plain(first))
        }
        None => "released when the breaker closes".to_owned(),
    }
}
