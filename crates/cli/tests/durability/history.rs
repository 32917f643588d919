//! The events of a job, and the laws that every history obeys.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The events of one type.
pub(crate) fn all<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

pub(crate) fn count(events: &[Value], kind: &str) -> usize {
    all(events, kind).len()
}

pub(crate) fn has_event(events: &[Value], kind: &str) -> bool {
    count(events, kind) > 0
}

/// The only event of a type.
#[track_caller]
pub(crate) fn one<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    let matching = all(events, kind);
    assert_eq!(matching.len(), 1, "{kind}: {events:#?}");
    matching[0]
}

/// Asserts that an object has these values in these fields: `assert_fields!(report, {"attempts": 2})`.
/// It may have other fields.
macro_rules! assert_fields {
    ($object:expr, $fields:tt) => {
        for (key, value) in serde_json::json!($fields).as_object().unwrap() {
            assert_eq!(&$object[key.as_str()], value, "{key} of {:#?}", $object);
        }
    };
}
pub(crate) use assert_fields;

#[track_caller]
pub(crate) fn assert_contains(text: &Value, word: &str) {
    assert!(text.as_str().unwrap().contains(word), "{text}");
}

/// The delays of the scheduled retries, in milliseconds.
pub(crate) fn delays(events: &[Value]) -> Vec<u64> {
    let scheduled = all(events, "retry_scheduled").into_iter();
    scheduled.map(|event| event["delay_ms"].as_u64().unwrap()).collect()
}

/// How many attempts were started, by item and command.
pub(crate) fn starts(events: &[Value]) -> BTreeMap<(String, String), u64> {
    let mut starts = BTreeMap::new();
    for event in all(events, "attempt_started") {
        *starts.entry(subject(event)).or_default() += 1;
    }
    starts
}

/// How the attempts of a job ended, in order: `success`, or the cause of the failure.
pub(crate) fn outcomes(events: &[Value]) -> Vec<String> {
    let ended = events.iter().filter_map(|event| match kind(event) {
        "attempt_succeeded" => Some("success".to_owned()),
        "attempt_failed" => Some(text(&event["cause"])),
        _ => None,
    });
    ended.collect()
}

/// How many attempts of a job ended like this.
pub(crate) fn count_outcomes(events: &[Value], outcome: &str) -> usize {
    outcomes(events).iter().filter(|each| *each == outcome).count()
}

/// Whether an event ends the job again, because a late result that counts has brought what it lacked.
fn is_met_late(events: &[Value], event: &Value) -> bool {
    let counts = |late: &Value| late["type"] == "late_result" && late["policy"] == "update_result";
    kind(event) == "job_completed" && events.iter().any(counts)
}

/// The laws of every history, however often a process was killed: events are numbered; attempts of a
/// command are numbered one by one, those of a handler over all its rounds; each starts once, ends at most once, and never overlaps another;
/// no retry starts before it is due; only late results follow the end.
#[track_caller]
pub(crate) fn assert_lawful(events: &[Value]) {
    let mut attempts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut open: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut due: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    let mut ended = false;
    let mut last = 0_u64;
    for event in events {
        // Breaker events are listed among those of the job, but have no number in its journal.
        if !kind(event).starts_with("breaker_") || kind(event) == "breaker_configured" {
            last += 1;
            assert_eq!(event["seq"], last, "events are numbered: {event}");
        }
        let may_follow = ["late_result", "attribute_set"].contains(&kind(event));
        assert!(!ended || may_follow || is_met_late(events, event), "an event follows the end: {event}");
        let of = subject(event);
        let attempt = event["attempt"].as_u64();
        match kind(event) {
            "attempt_started" => {
                let made = attempts.entry(of.clone()).or_default();
                *made += 1;
                assert_eq!(attempt, Some(*made), "attempts are numbered: {event}");
                assert!(numbers.insert(event["start"].as_u64()), "each attempt starts once: {event}");
                let other = open.insert(of.clone(), *made);
                assert_eq!(other, None, "attempts do not overlap: {event}");
                if let Some(due) = due.remove(&of) {
                    assert!(due <= text(&event["at"]), "started before {due}: {event}");
                }
            }
            "attempt_succeeded" | "attempt_failed" => {
                assert_eq!(open.remove(&of), attempt, "only a running attempt can end: {event}");
            }
            "retry_scheduled" => {
                due.insert(of, text(&event["due_at"]));
            }
            "job_completed" | "job_failed" | "job_partial" | "job_cancelled" => {
                assert_eq!(open.len(), 0, "an attempt runs at the end: {event}");
                ended = true;
            }
            _ => {}
        }
    }
    assert!(ended, "the job has not ended: {events:#?}");
}

/// How many attempts of all jobs were probes of a breaker.
pub(crate) fn probes(breaker: &Value) -> usize {
    changes(breaker, "half_opened") + changes(breaker, "probe")
}

/// How often a breaker changed like this.
pub(crate) fn changes(breaker: &Value, change: &str) -> usize {
    let history = breaker["history"].as_array().unwrap().iter();
    history.filter(|each| each["change"] == change).count()
}

/// While a breaker that only this job uses is open, no attempt of the job starts but its probes.
#[track_caller]
pub(crate) fn only_probes_start_while_open(events: &[Value], breaker: &Value) {
    let mut open = false;
    let mut started = 0;
    for event in events {
        match kind(event) {
            "breaker_opened" => open = true,
            "breaker_closed" => open = false,
            "attempt_started" if open => started += 1,
            _ => {}
        }
    }
    assert_eq!(started, probes(breaker), "{events:#?}");
}

/// The items of a job that are on hold.
pub(crate) fn held(events: &[Value]) -> BTreeSet<String> {
    let mut held = BTreeSet::new();
    for event in events {
        match kind(event) {
            "held" => held.insert(text(&event["item"])),
            "released" | "item_dead_lettered" | "item_skipped" => held.remove(&text(&event["item"])),
            _ => false,
        };
    }
    held
}

/// How many attempts of a job are running.
pub(crate) fn running(events: &[Value]) -> usize {
    count(events, "attempt_started") - outcomes(events).len()
}

pub(crate) fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn subject(event: &Value) -> (String, String) {
    (text(&event["item"]), text(&event["command"]))
}

/// The milliseconds of a timestamp, on a scale of its own.
pub(crate) fn millis(at: &Value) -> i64 {
    let at = text(at);
    let part = |from: usize, to: usize| at[from..to].parse::<i64>().unwrap();
    let (mut year, month, day) = (part(0, 4), part(5, 7), part(8, 10));
    // Years begin in March here, so that a leap day is the last day of its year.
    let month = (month + 9) % 12;
    year -= month / 10;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + day;
    let seconds = part(11, 13) * 3600 + part(14, 16) * 60 + part(17, 19);
    (days * 86400 + seconds) * 1000 + part(20, 23)
}
