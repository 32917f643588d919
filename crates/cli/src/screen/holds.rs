//! Held items: the breaker, since when, its next probe, and what follows.

use std::time::Duration;

use undaunted_engine::view::{BreakerView, HoldView};
use undaunted_policy::Timestamp;

use super::breakers::sentence as breaker_sentence;
use super::duration::{measured, short};
use super::words::{count, plain, quoted};

/// `held by api for 12s`
pub(super) fn shortly(of: &HoldView, now: Timestamp) -> String {
    format!("held by {} for {}", plain(&of.breaker), whole(of.since.0, now))
}

/// `held by api for 12s; it looks again in 40s; 3 attempts left`
pub(super) fn sentence(job: &str, of: &HoldView, now: Timestamp) -> String {
    let mut said = vec![shortly(of, now), looks_of(job, of, now)];
    if of.goes_first {
        said.push("this one goes first".to_owned());
    }
    said.push(left(of.attempts_left));
    if let Some(expires) = of.expires_at {
        said.push(format!("fails if it is held for {} more", whole(now, expires.0)));
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

fn looks_of(job: &str, of: &HoldView, now: Timestamp) -> String {
    let state = of.state.unwrap_or_default();
    let until = of.until.map(|until| until.0);
    looks(job, state, until, of.probing.as_deref(), now)
}

/// When a breaker looks again: `it looks again in 40s`.
pub(super) fn looks(
    job: &str,
    state: &str,
    until: Option<Timestamp>,
    probing: Option<&str>,
    now: Timestamp,
) -> String {
    match (state, until, probing) {
        ("", _, _) => "how it stands is not known".to_owned(),
        ("open", Some(until), _) if until > now => {
            format!("it looks again in {}", ahead(until.since(now)))
        }
        ("half_open", _, Some(other)) if other != job => {
            format!("a probe of job {other} is under way")
        }
        ("half_open", _, Some(_)) => "a probe is under way".to_owned(),
        ("closed", _, _) => "it has closed, and lets them go one by one".to_owned(),
        (_, _, _) => "it lets the next one through".to_owned(),
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

/// The facts of a hold, each with its label.
pub(super) fn story(
    of: &HoldView,
    breaker: Option<&BreakerView>,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![("since", of.since.to_string())];
    if let Some(breaker) = breaker {
        facts.push(("breaker", breaker_sentence(breaker, now)));
        facts.push(("then", then(of, breaker)));
    }
    facts.push((
        "attempts",
        match of.attempts_left {
            Some(left) => format!("{left} left; a hold uses none of them, and no budget"),
            None => "any number; a hold uses no budget".to_owned(),
        },
    ));
    if let Some(expires) = of.expires_at {
        let reason = of.expires_with.unwrap_or_default();
        let in_time =
            if expires.0 > now { format!(" in {}", ahead(expires.0.since(now))) } else { String::new() };
        facts.push(("expires", format!("{expires}: held until then it fails{in_time} ({reason})")));
    }
    let reset = format!("undaunted breaker reset {}", quoted(&of.breaker));
    facts.push(("by hand", reset));
    facts
}

/// What happens to the item when the breaker half opens.
fn then(of: &HoldView, breaker: &BreakerView) -> String {
    if breaker.state == "closed" {
        return "it goes on in its turn; what was held is let go one after the other".to_owned();
    }
    if of.goes_first && breaker.probe.is_some() {
        return "it is the next to find out, when the probe that is under way has ended".to_owned();
    }
    if of.goes_first {
        return "it goes first, to find out whether the target is back".to_owned();
    }
    match &of.first {
        Some(first) => {
            format!("{} goes first, to find out; this one goes on when the breaker has closed", plain(first))
        }
        None => "it goes on when the breaker has closed".to_owned(),
    }
}
