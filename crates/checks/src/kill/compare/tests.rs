//! A sound record passes, and each doctored one is found out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Call, Case, Deeds, compare};
use crate::kill::found::{Found, Kind};
use crate::kill::journal::{self, Event};
use crate::kill::outside::{Line, Run};
use crate::kill::plan::{Drawn, Means, Plan};
use crate::kill::policy::Policy;
use crate::kill::step_server::Posted;

/// The beginning of all times here, in microseconds.
const DAWN: u64 = 1_767_225_600_000_000;

/// A job with one command that fails, is retried 20 ms later and succeeds; one request; one request
/// whose result comes later.
#[derive(Clone)]
struct Told {
    plan: Plan,
    events: Vec<Value>,
    runs: Vec<Run>,
    calls: Vec<Call>,
    posted: Vec<Posted>,
    deeds: Deeds,
}

fn at(millis: u64) -> String {
    format!("2026-01-01T00:00:00.{millis:03}Z")
}

fn micros(millis: u64) -> u64 {
    DAWN + millis * 1000
}

fn run(attempt: u64, start: u64, begin: u64, end: u64, code: u8) -> Run {
    Run {
        begin: Line {
            at: micros(begin),
            pid: i32::try_from(start).unwrap(),
            item: "work".to_owned(),
            correlation: "work".to_owned(),
            command: "work".to_owned(),
            token: "token".to_owned(),
            attempt,
            start,
            ..Line::default()
        },
        end: Some((micros(end), code)),
    }
}

fn call(name: &str, begin: u64) -> Call {
    Call {
        correlation: name.to_owned(),
        command: name.to_owned(),
        token: format!("token of {name}"),
        begin: micros(begin),
        status: Some(200),
        beside: false,
    }
}

fn sound() -> Told {
    let event = |millis: u64, kind: &str, of: &str, attempt: u64, more: Value| {
        let mut event = json!({
            "at": at(millis), "type": kind, "item": of, "correlation_id": of, "command": of, "attempt": attempt,
        });
        for (key, value) in more.as_object().unwrap() {
            event[key] = value.clone();
        }
        event
    };
    let start = |number: u64| json!({ "start": number });
    let retry = json!({
        "retry": 1, "delay_ms": 20, "due_at": at(40), "spent_before_ms": 0, "spent_ms": 20,
        "pool": {"used": 0, "allowed": 3},
    });
    let exit = json!({"cause": "exit", "exit_code": 3});
    let end = json!({"status": "completed"});
    let events = vec![
        json!({"at": at(1), "type": "job_submitted"}),
        event(10, "attempt_started", "work", 1, start(1)),
        event(20, "attempt_failed", "work", 1, exit),
        event(20, "retry_scheduled", "work", 1, retry),
        event(41, "attempt_started", "work", 2, start(2)),
        event(50, "attempt_succeeded", "work", 2, json!({})),
        event(50, "item_succeeded", "work", 2, json!({})),
        event(50, "attempt_started", "call", 1, start(3)),
        event(60, "attempt_succeeded", "call", 1, json!({})),
        event(60, "attempt_started", "later", 1, start(4)),
        event(75, "attempt_succeeded", "later", 1, json!({})),
        event(80, "job_completed", "", 0, end),
    ];
    let policy = Policy::of_flow(1, 20, 100, false);
    let commands = [
        ("work", Drawn::of(Means::Process, policy)),
        ("call", Drawn::of(Means::Call, Policy::none())),
        ("later", Drawn::of(Means::Later, Policy::none())),
    ];
    let commands: BTreeMap<_, _> = commands.map(|(id, drawn)| (id.to_owned(), drawn)).into();
    Told {
        plan: Plan { commands, pool: Some((3, 2)), ..Plan::default() },
        events,
        runs: vec![run(1, 1, 12, 18, 3), run(2, 2, 43, 48, 0)],
        calls: vec![call("call", 52), call("later", 62)],
        posted: vec![Posted {
            correlation: "later".to_owned(),
            command: "later".to_owned(),
            first: micros(70),
            taken: Some(micros(76)),
            refused: None,
        }],
        deeds: Deeds::default(),
    }
}

impl Told {
    fn compared(&self) -> Found {
        let numbered = (1_u64..).zip(&self.events).map(|(seq, event)| {
            let mut event = event.clone();
            event["seq"] = event.get("seq").cloned().unwrap_or_else(|| seq.into());
            event.to_string()
        });
        let text: Vec<String> = numbered.collect();
        let events: Vec<Event> = journal::read(&text.join("\n")).unwrap();
        compare(&Case {
            plan: &self.plan,
            events: &events,
            runs: &self.runs,
            calls: &self.calls,
            posted: &self.posted,
            deeds: &self.deeds,
        })
    }
}

/// Changes a sound record, and expects this to be found, and nothing that it does not bring with it.
#[track_caller]
fn doctored(change: impl FnOnce(&mut Told), kind: Kind, word: &str) {
    let mut told = sound();
    change(&mut told);
    let found = told.compared();
    let mut all = found.violations.iter();
    assert!(all.any(|it| it.kind == kind && it.what.contains(word)), "{word}: {found:#?}");
}

#[test]
fn a_sound_record_breaks_no_promise_and_its_lateness_is_measured() {
    let found = sound().compared();
    assert_eq!(found.violations, []);
    assert_eq!((found.waits, found.lateness), (1, 3000));
}

#[test]
fn an_attempt_begun_twice_is_found() {
    doctored(|told| told.runs.push(run(2, 2, 45, 47, 0)), Kind::Duplicated, "begun twice");
}

#[test]
fn an_attempt_beside_another_is_found() {
    doctored(|told| told.runs[1].begin.beside = true, Kind::Duplicated, "while another attempt was alive");
    doctored(|told| told.calls[0].beside = true, Kind::Duplicated, "was under way");
}

#[test]
fn a_success_that_never_came_to_its_end_is_found() {
    doctored(|told| told.runs[1].end = None, Kind::Lost, "never came");
    doctored(|told| told.runs[1].end = Some((micros(48), 1)), Kind::Lost, "never came");
    doctored(|told| drop(told.runs.pop()), Kind::Lost, "never ran");
}

#[test]
fn an_end_that_is_not_the_one_on_record_is_found() {
    doctored(|told| told.runs[0].end = Some((micros(18), 0)), Kind::Lost, "not with 3");
}

#[test]
fn a_result_thrown_away_is_found_unless_its_keeper_died() {
    let cut = |told: &mut Told| {
        told.events[2]["cause"] = json!("interrupted");
    };
    doctored(cut, Kind::Lost, "nobody killed its keeper");
    let mut told = sound();
    cut(&mut told);
    told.deeds.keepers = vec![micros(15)];
    assert_eq!(told.compared().violations, []);
    // One that died before, or long after, has nothing to do with it.
    told.deeds.keepers = vec![micros(5), micros(60)];
    assert_ne!(told.compared().violations, []);
}

#[test]
fn a_begin_before_it_was_due_or_on_record_is_found() {
    doctored(|told| told.runs[1].begin.at = micros(39), Kind::Unlawful, "1000 µs before it was due");
    doctored(|told| told.runs[0].begin.at = micros(9), Kind::Unlawful, "before its start was on record");
    doctored(|told| told.events[4]["at"] = json!(at(30)), Kind::Unlawful, "started before it is due");
}

#[test]
fn a_begin_after_the_end_on_record_is_found() {
    doctored(|told| told.runs[1].begin.at = micros(90), Kind::Duplicated, "after its end was on record");
}

#[test]
fn what_ran_and_is_not_on_record_is_found() {
    doctored(|told| told.runs.push(run(3, 9, 55, 57, 0)), Kind::Lost, "its start is not on record");
}

#[test]
fn more_attempts_than_allowed_are_found() {
    doctored(
        |told| {
            let none = Drawn::of(Means::Process, Policy::none());
            told.plan.commands.insert("work".to_owned(), none);
        },
        Kind::Duplicated,
        "more attempts than the allowed",
    );
}

#[test]
fn a_start_after_the_success_is_found() {
    doctored(
        |told| {
            let mut again = told.events[4].clone();
            again["start"] = json!(9);
            again["attempt"] = json!(3);
            told.events.insert(6, again);
        },
        Kind::Duplicated,
        "its success is on record",
    );
}

#[test]
fn a_wait_that_was_drawn_again_or_restarted_is_found() {
    doctored(|told| told.events[3]["delay_ms"] = json!(25), Kind::Unlawful, "a delay from 20 to 20 ms");
    doctored(|told| told.events[3]["due_at"] = json!(at(38)), Kind::Unlawful, "after it was decided");
    doctored(
        |told| {
            let again = told.events[3].clone();
            told.events.insert(4, again);
        },
        Kind::Duplicated,
        "scheduled twice",
    );
}

#[test]
fn sums_that_do_not_come_out_are_found() {
    doctored(|told| told.events[3]["spent_before_ms"] = json!(7), Kind::Unlawful, "were spent before");
    doctored(|told| told.events[3]["pool"]["used"] = json!(1), Kind::Unlawful, "were charged before");
    doctored(|told| told.plan.pool = Some((0, 0)), Kind::Unlawful, "is exceeded");
}

#[test]
fn a_job_or_an_item_that_never_ends_is_found() {
    doctored(|told| drop(told.events.pop()), Kind::Lost, "the job never ends");
    doctored(
        |told| {
            told.events.insert(1, json!({"at": at(2), "type": "items_read"}));
            told.plan.items = vec!["gone".to_owned()];
        },
        Kind::Lost,
        "item gone never ends",
    );
    doctored(
        |told| {
            let again = told.events[6].clone();
            told.events.insert(7, again);
        },
        Kind::Duplicated,
        "ends twice",
    );
}

#[test]
fn a_missing_event_is_found() {
    doctored(|told| told.events[5]["seq"] = json!(7), Kind::Lost, "event 6 is missing");
}

#[test]
fn a_request_too_many_or_one_that_was_never_sent_is_found() {
    doctored(|told| told.calls.push(call("call", 55)), Kind::Duplicated, "2 requests of call");
    doctored(|told| drop(told.calls.remove(0)), Kind::Lost, "answered 200 by nobody");
    doctored(|told| told.calls[0].begin = micros(100), Kind::Duplicated, "had ended");
    doctored(|told| told.calls[0].status = Some(503), Kind::Lost, "answered 200 by nobody");
}

#[test]
fn a_result_that_was_taken_and_is_not_on_record_is_found() {
    doctored(
        |told| {
            told.events[10]["type"] = json!("attempt_failed");
            told.events[10]["cause"] = json!("interrupted");
        },
        Kind::Lost,
        "answered 200 and is not on record",
    );
    doctored(|told| told.posted.clear(), Kind::Lost, "nobody sent this result");
    doctored(|told| told.posted[0].refused = Some(404), Kind::Lost, "was refused");
}

#[test]
fn a_token_that_changes_is_found() {
    doctored(|told| told.runs[1].begin.token = "other".to_owned(), Kind::Unlawful, "not its own for ever");
}

#[test]
fn a_start_while_its_breaker_is_open_is_found() {
    doctored(
        |told| {
            let opened = json!({"at": at(30), "type": "breaker_opened", "breaker": "b"});
            told.events[4]["breaker"] = json!("b");
            told.events.insert(4, opened);
        },
        Kind::Unlawful,
        "while its breaker is open",
    );
}

#[test]
fn what_was_said_and_given_otherwise_is_found() {
    doctored(
        |told| {
            let work = told.plan.commands.get_mut("work").unwrap();
            work.given = Some("call".to_owned());
        },
        Kind::Lost,
        "was said",
    );
}
