//! Sound it passes, and each falsified one is found.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{InjectedKills, KillEvidence, ServedCall, compare};
use crate::kill::findings::KillFindings;
use crate::kill::findings::ViolationKind::{self, Duplicated, Lost, Unlawful};
use crate::kill::journal::{self, JournalEvent};
use crate::kill::plan::{CommandKind, KillPlan, PlannedCommand};
use crate::kill::policy::DrawnPolicy;
use crate::kill::record::{CommandRun, RecordLine};
use crate::kill::step_server::PostedResult;

/// The first instant of these tests, in microseconds.
const FIRST_INSTANT: u64 = 1_767_225_600_000_000;

/// A job with a command that fails, is retried after 20 ms and succeeds, a request, and a request with an
/// async result.
#[derive(Clone)]
struct SoundEvidence {
    plan: KillPlan,
    events: Vec<Value>,
    runs: Vec<CommandRun>,
    calls: Vec<ServedCall>,
    posted: Vec<PostedResult>,
    kills: InjectedKills,
}

fn at(millis: u64) -> String {
    format!("2026-01-01T00:00:00.{millis:03}Z")
}

fn micros(millis: u64) -> u64 {
    FIRST_INSTANT + millis * 1000
}

fn run(attempt: u64, start: u64, begin: u64, end: u64, code: u8) -> CommandRun {
    CommandRun {
        begin: RecordLine {
            at: micros(begin),
            pid: i32::try_from(start).unwrap(),
            item: "work".to_owned(),
            correlation: "work".to_owned(),
            command: "work".to_owned(),
            token: "token".to_owned(),
            attempt,
            start,
            ..RecordLine::default()
        },
        end: Some((micros(end), code)),
    }
}

fn call(name: &str, begin: u64) -> ServedCall {
    ServedCall {
        correlation: name.to_owned(),
        command: name.to_owned(),
        token: format!("token of {name}"),
        begin: micros(begin),
        status: Some(200),
        overlaps: false,
    }
}

fn sound() -> SoundEvidence {
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
    let policy = DrawnPolicy::of_flow(1, 20, 100, false);
    let commands = [
        ("work", PlannedCommand::of(CommandKind::Process, policy)),
        ("call", PlannedCommand::of(CommandKind::Call, DrawnPolicy::none())),
        ("later", PlannedCommand::of(CommandKind::Later, DrawnPolicy::none())),
    ];
    let commands: BTreeMap<_, _> = commands.map(|(id, planned)| (id.to_owned(), planned)).into();
    SoundEvidence {
        plan: KillPlan { commands, pool: Some((3, 2)), ..KillPlan::default() },
        events,
        runs: vec![run(1, 1, 12, 18, 3), run(2, 2, 43, 48, 0)],
        calls: vec![call("call", 52), call("later", 62)],
        posted: vec![PostedResult {
            correlation: "later".to_owned(),
            command: "later".to_owned(),
            first: micros(70),
            accepted_at: Some(micros(76)),
            refused: None,
        }],
        kills: InjectedKills::default(),
    }
}

impl SoundEvidence {
    fn compared(&self) -> KillFindings {
        let numbered = (1_u64..).zip(&self.events).map(|(seq, event)| {
            let mut event = event.clone();
            event["seq"] = event.get("seq").cloned().unwrap_or_else(|| seq.into());
            event.to_string()
        });
        let text: Vec<String> = numbered.collect();
        let events: Vec<JournalEvent> = journal::read(&text.join("\n")).unwrap();
        compare(&KillEvidence {
            plan: &self.plan,
            events: &events,
            runs: &self.runs,
            calls: &self.calls,
            posted: &self.posted,
            kills: &self.kills,
        })
    }
}

/// A change of sound evidence, and words of the violation that it must cause.
type Falsification = (fn(&mut SoundEvidence), &'static str);

/// Falsifies sound evidence in each of these ways and expects the violation.
#[track_caller]
fn finds<const N: usize>(kind: ViolationKind, falsifications: [Falsification; N]) {
    for (falsify, words) in falsifications {
        let mut evidence = sound();
        falsify(&mut evidence);
        let findings = evidence.compared();
        let mut all = findings.violations.iter();
        assert!(all.any(|it| it.kind == kind && it.what.contains(words)), "{words}: {findings:#?}");
    }
}

/// Repeats an event.
fn repeat(it: &mut SoundEvidence, index: usize) {
    let again = it.events[index].clone();
    it.events.insert(index + 1, again);
}

fn interrupt(it: &mut SoundEvidence) {
    it.events[2]["cause"] = json!("interrupted");
}

#[test]
fn sound_evidence_breaks_no_promise_and_its_lateness_is_measured() {
    let findings = sound().compared();
    assert_eq!(findings.violations, []);
    assert_eq!((findings.waits, findings.lateness), (1, 3000));
}

#[test]
fn what_is_done_too_often_is_found() {
    let again_after_success = |it: &mut SoundEvidence| {
        let mut again = it.events[4].clone();
        (again["start"], again["attempt"]) = (json!(9), json!(3));
        it.events.insert(6, again);
    };
    let no_retries = |it: &mut SoundEvidence| {
        let none = PlannedCommand::of(CommandKind::Process, DrawnPolicy::none());
        it.plan.commands.insert("work".to_owned(), none);
    };
    finds(
        Duplicated,
        [
            (|it| it.runs.push(run(2, 2, 45, 47, 0)), "begun twice"),
            (|it| it.runs[1].begin.overlaps = true, "while another attempt was alive"),
            (|it| it.runs[1].begin.at = micros(90), "after its end was on record"),
            (|it| it.calls[0].overlaps = true, "was under way"),
            (|it| it.calls.push(call("call", 55)), "2 requests of call"),
            (|it| it.calls[0].begin = micros(100), "had ended"),
            (no_retries, "more attempts than the allowed"),
            (again_after_success, "its success is on record"),
            (|it| repeat(it, 3), "scheduled twice"),
            (|it| repeat(it, 6), "ends twice"),
        ],
    );
}

#[test]
fn what_is_lost_is_found() {
    let missing_item = |it: &mut SoundEvidence| {
        it.events.insert(1, json!({"at": at(2), "type": "items_read"}));
        it.plan.items = vec!["gone".to_owned()];
    };
    let lost_result = |it: &mut SoundEvidence| {
        it.events[10]["type"] = json!("attempt_failed");
        it.events[10]["cause"] = json!("interrupted");
    };
    let wrong_output = |it: &mut SoundEvidence| {
        it.plan.commands.get_mut("work").unwrap().given = Some("call".to_owned());
    };
    finds(
        Lost,
        [
            (|it| it.runs[1].end = None, "never came"),
            (|it| it.runs[1].end = Some((micros(48), 1)), "never came"),
            (|it| drop(it.runs.pop()), "never ran"),
            (|it| it.runs[0].end = Some((micros(18), 0)), "not with 3"),
            (|it| it.runs.push(run(3, 9, 55, 57, 0)), "its start is not on record"),
            (interrupt, "its keeper was not killed"),
            (|it| drop(it.events.pop()), "the job never ends"),
            (|it| it.events[5]["seq"] = json!(7), "event 6 is missing"),
            (missing_item, "item gone never ends"),
            (|it| drop(it.calls.remove(0)), "no response 200"),
            (|it| it.calls[0].status = Some(503), "no response 200"),
            (lost_result, "answered 200 and is not on record"),
            (|it| it.posted.clear(), "was never sent"),
            (|it| it.posted[0].refused = Some(404), "was refused"),
            (wrong_output, "was output"),
        ],
    );
}

#[test]
fn an_interrupted_attempt_is_excused_by_the_death_of_its_keeper() {
    let mut evidence = sound();
    interrupt(&mut evidence);
    evidence.kills.keepers = vec![micros(15)];
    assert_eq!(evidence.compared().violations, []);
    // A keeper that died before, or long after, does not excuse it.
    evidence.kills.keepers = vec![micros(5), micros(60)];
    assert_ne!(evidence.compared().violations, []);
}

#[test]
fn what_is_too_early_or_too_much_is_found() {
    let open_breaker = |it: &mut SoundEvidence| {
        it.events[4]["breaker"] = json!("b");
        it.events.insert(4, json!({"at": at(30), "type": "breaker_opened", "breaker": "b"}));
    };
    finds(
        Unlawful,
        [
            (|it| it.runs[1].begin.at = micros(39), "1000 µs before it was due"),
            (|it| it.runs[0].begin.at = micros(9), "before its start was on record"),
            (|it| it.events[4]["at"] = json!(at(30)), "started before it is due"),
            (|it| it.events[3]["delay_ms"] = json!(25), "a delay from 20 to 20 ms"),
            (|it| it.events[3]["due_at"] = json!(at(38)), "after it was decided"),
            (|it| it.events[3]["spent_before_ms"] = json!(7), "were spent before"),
            (|it| it.events[3]["pool"]["used"] = json!(1), "were charged before"),
            (|it| it.plan.pool = Some((0, 0)), "is exceeded"),
            (|it| it.runs[1].begin.token = "other".to_owned(), "not its own"),
            (open_breaker, "while its breaker is open"),
        ],
    );
}
