//! The events of a job, and the laws every history keeps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The events of one kind.
pub(crate) fn all<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    let found = events.iter().filter(|event| event["type"] == kind);
    found.collect()
}

/// The only event of a kind.
pub(crate) fn one<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    let found = all(events, kind);
    assert_eq!(found.len(), 1, "{kind}: {events:#?}");
    found[0]
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

/// What holds of every history, however often somebody was killed: events are numbered; attempts of a
/// command are numbered one by one, each is started once, ends at most once, and never while another
/// runs; no retry starts before it is due; nothing follows the end.
pub(crate) fn is_lawful(events: &[Value]) {
    let mut attempts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut open: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut due: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    let mut ended = false;
    let mut last = 0_u64;
    for event in events {
        // What happens to breakers is recorded with them, and has no number here.
        if !kind(event).starts_with("breaker_") || kind(event) == "breaker_configured" {
            last += 1;
            assert_eq!(event["seq"], last, "events are numbered: {event}");
        }
        assert!(!ended, "nothing follows the end: {event}");
        let of = subject(event);
        let attempt = event["attempt"].as_u64();
        match kind(event) {
            "attempt_started" => {
                let made = attempts.entry(of.clone()).or_default();
                *made += 1;
                assert_eq!(attempt, Some(*made), "attempts are numbered: {event}");
                assert!(numbers.insert(event["start"].as_u64()), "each starts once: {event}");
                let other = open.insert(of.clone(), *made);
                assert_eq!(other, None, "one lives at a time: {event}");
                if let Some(due) = due.remove(&of) {
                    assert!(due <= text(&event["at"]), "not before {due}: {event}");
                }
            }
            "attempt_succeeded" | "attempt_failed" => {
                assert_eq!(open.remove(&of), attempt, "only what runs can end: {event}");
            }
            "command_stopped" => {
                // Its handler runs from the beginning, in every round of it.
                let item = of.0.clone();
                attempts.retain(|(of, command), _| of != &item || !command.starts_with("on_"));
            }
            "retry_scheduled" => {
                due.insert(of, text(&event["due_at"]));
            }
            "job_completed" | "job_failed" | "job_partial" | "job_cancelled" => {
                assert_eq!(open.len(), 0, "nothing runs at the end: {event}");
                ended = true;
            }
            _ => {}
        }
    }
    assert!(ended, "it has ended: {events:#?}");
}

/// The starts of a breaker that found out whether its target is back: of one job, or of all.
pub(crate) fn probes(breaker: &Value, job: Option<&str>) -> usize {
    let words = ["half_opened", "probe"];
    let history = breaker["history"].as_array().unwrap().iter();
    let probes = history.filter(|change| words.iter().any(|word| change["change"] == *word));
    probes.filter(|change| job.is_none_or(|job| change["job"] == job)).count()
}

/// How often something happened to a breaker.
pub(crate) fn changes(breaker: &Value, word: &str) -> usize {
    let history = breaker["history"].as_array().unwrap().iter();
    history.filter(|change| change["change"] == word).count()
}

/// While a breaker that only this job uses is open nothing of the job starts but its probes.
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
    assert_eq!(started, probes(breaker, None), "{events:#?}");
}

/// The items of a job that are held.
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

/// How many attempts of a job run.
pub(crate) fn running(events: &[Value]) -> usize {
    all(events, "attempt_started").len() - outcomes(events).len()
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

/// An instant as events write it, in milliseconds.
pub(crate) fn millis(at: &Value) -> i64 {
    let at = text(at);
    let part = |from: usize, to: usize| at[from..to].parse::<i64>().unwrap();
    let (mut year, month, day) = (part(0, 4), part(5, 7), part(8, 10));
    // Years begin in March here, so that a leap day is the last of its year.
    let month = (month + 9) % 12;
    year -= month / 10;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (month * 306 + 5) / 10 + day;
    let seconds = part(11, 13) * 3600 + part(14, 16) * 60 + part(17, 19);
    (days * 86400 + seconds) * 1000 + part(20, 23)
}
