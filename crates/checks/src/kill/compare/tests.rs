//! Sound evidence passes, and each falsified one is found.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{InjectedKills, KillEvidence, ServedCall, compare};
use crate::kill::findings::{KillFindings, ViolationKind};
use crate::kill::journal::{self, JournalEvent};
use crate::kill::plan::{CommandKind, KillPlan, PlannedCommand};
use crate::kill::policy::DrawnPolicy;
use crate::kill::record::{CommandRun, RecordLine};
use crate::kill::step_server::PostedResult;

/// The first instant of these tests, in microseconds.
const DAWN: u64 = 1_767_225_600_000_000;

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
    DAWN + millis * 1000
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

/// Falsifies sound evidence and expects the violation.
#[track_caller]
fn doctored(change: impl FnOnce(&mut SoundEvidence), kind: ViolationKind, word: &str) {
    let mut evidence = sound();
    change(&mut evidence);
    let findings = evidence.compared();
    let mut all = findings.violations.iter();
    assert!(all.any(|it| it.kind == kind && it.what.contains(word)), "{word}: {findings:#?}");
}

#[test]
fn a_sound_record_breaks_no_promise_and_its_lateness_is_measured() {
    let findings = sound().compared();
    assert_eq!(findings.violations, []);
    assert_eq!((findings.waits, findings.lateness), (1, 3000));
}

#[test]
fn an_attempt_begun_twice_is_found() {
    doctored(|evidence| evidence.runs.push(run(2, 2, 45, 47, 0)), ViolationKind::Duplicated, "begun twice");
}

#[test]
fn an_attempt_beside_another_is_found() {
    doctored(
        |evidence| evidence.runs[1].begin.overlaps = true,
        ViolationKind::Duplicated,
        "while another attempt was alive",
    );
    doctored(|evidence| evidence.calls[0].overlaps = true, ViolationKind::Duplicated, "was under way");
}

#[test]
fn a_success_that_never_came_to_its_end_is_found() {
    doctored(|evidence| evidence.runs[1].end = None, ViolationKind::Lost, "never came");
    doctored(|evidence| evidence.runs[1].end = Some((micros(48), 1)), ViolationKind::Lost, "never came");
    doctored(|evidence| drop(evidence.runs.pop()), ViolationKind::Lost, "never ran");
}

#[test]
fn an_end_that_is_not_the_one_on_record_is_found() {
    doctored(|evidence| evidence.runs[0].end = Some((micros(18), 0)), ViolationKind::Lost, "not with 3");
}

#[test]
fn a_result_thrown_away_is_found_unless_its_keeper_died() {
    let cut = |evidence: &mut SoundEvidence| {
        evidence.events[2]["cause"] = json!("interrupted");
    };
    doctored(cut, ViolationKind::Lost, "its keeper was not killed");
    let mut evidence = sound();
    cut(&mut evidence);
    evidence.kills.keepers = vec![micros(15)];
    assert_eq!(evidence.compared().violations, []);
    // A keeper that died before, or long after, does not excuse it.
    evidence.kills.keepers = vec![micros(5), micros(60)];
    assert_ne!(evidence.compared().violations, []);
}

#[test]
fn a_begin_before_it_was_due_or_on_record_is_found() {
    doctored(
        |evidence| evidence.runs[1].begin.at = micros(39),
        ViolationKind::Unlawful,
        "1000 µs before it was due",
    );
    doctored(
        |evidence| evidence.runs[0].begin.at = micros(9),
        ViolationKind::Unlawful,
        "before its start was on record",
    );
    doctored(
        |evidence| evidence.events[4]["at"] = json!(at(30)),
        ViolationKind::Unlawful,
        "started before it is due",
    );
}

#[test]
fn a_begin_after_the_end_on_record_is_found() {
    doctored(
        |evidence| evidence.runs[1].begin.at = micros(90),
        ViolationKind::Duplicated,
        "after its end was on record",
    );
}

#[test]
fn what_ran_and_is_not_on_record_is_found() {
    doctored(
        |evidence| evidence.runs.push(run(3, 9, 55, 57, 0)),
        ViolationKind::Lost,
        "its start is not on record",
    );
}

#[test]
fn more_attempts_than_allowed_are_found() {
    doctored(
        |evidence| {
            let none = PlannedCommand::of(CommandKind::Process, DrawnPolicy::none());
            evidence.plan.commands.insert("work".to_owned(), none);
        },
        ViolationKind::Duplicated,
        "more attempts than the allowed",
    );
}

#[test]
fn a_start_after_the_success_is_found() {
    doctored(
        |evidence| {
            let mut again = evidence.events[4].clone();
            again["start"] = json!(9);
            again["attempt"] = json!(3);
            evidence.events.insert(6, again);
        },
        ViolationKind::Duplicated,
        "its success is on record",
    );
}

#[test]
fn a_wait_that_was_drawn_again_or_restarted_is_found() {
    doctored(
        |evidence| evidence.events[3]["delay_ms"] = json!(25),
        ViolationKind::Unlawful,
        "a delay from 20 to 20 ms",
    );
    doctored(
        |evidence| evidence.events[3]["due_at"] = json!(at(38)),
        ViolationKind::Unlawful,
        "after it was decided",
    );
    doctored(
        |evidence| {
            let again = evidence.events[3].clone();
            evidence.events.insert(4, again);
        },
        ViolationKind::Duplicated,
        "scheduled twice",
    );
}

#[test]
fn sums_that_do_not_come_out_are_found() {
    doctored(
        |evidence| evidence.events[3]["spent_before_ms"] = json!(7),
        ViolationKind::Unlawful,
        "were spent before",
    );
    doctored(
        |evidence| evidence.events[3]["pool"]["used"] = json!(1),
        ViolationKind::Unlawful,
        "were charged before",
    );
    doctored(|evidence| evidence.plan.pool = Some((0, 0)), ViolationKind::Unlawful, "is exceeded");
}

#[test]
fn a_job_or_an_item_that_never_ends_is_found() {
    doctored(|evidence| drop(evidence.events.pop()), ViolationKind::Lost, "the job never ends");
    doctored(
        |evidence| {
            evidence.events.insert(1, json!({"at": at(2), "type": "items_read"}));
            evidence.plan.items = vec!["gone".to_owned()];
        },
        ViolationKind::Lost,
        "item gone never ends",
    );
    doctored(
        |evidence| {
            let again = evidence.events[6].clone();
            evidence.events.insert(7, again);
        },
        ViolationKind::Duplicated,
        "ends twice",
    );
}

#[test]
fn a_missing_event_is_found() {
    doctored(|evidence| evidence.events[5]["seq"] = json!(7), ViolationKind::Lost, "event 6 is missing");
}

#[test]
fn a_request_too_many_or_one_that_was_never_sent_is_found() {
    doctored(
        |evidence| evidence.calls.push(call("call", 55)),
        ViolationKind::Duplicated,
        "2 requests of call",
    );
    doctored(|evidence| drop(evidence.calls.remove(0)), ViolationKind::Lost, "no response 200");
    doctored(|evidence| evidence.calls[0].begin = micros(100), ViolationKind::Duplicated, "had ended");
    doctored(|evidence| evidence.calls[0].status = Some(503), ViolationKind::Lost, "no response 200");
}

#[test]
fn a_result_that_was_taken_and_is_not_on_record_is_found() {
    doctored(
        |evidence| {
            evidence.events[10]["type"] = json!("attempt_failed");
            evidence.events[10]["cause"] = json!("interrupted");
        },
        ViolationKind::Lost,
        "answered 200 and is not on record",
    );
    doctored(|evidence| evidence.posted.clear(), ViolationKind::Lost, "was never sent");
    doctored(|evidence| evidence.posted[0].refused = Some(404), ViolationKind::Lost, "was refused");
}

#[test]
fn a_token_that_changes_is_found() {
    doctored(
        |evidence| evidence.runs[1].begin.token = "other".to_owned(),
        ViolationKind::Unlawful,
        "not its own for ever",
    );
}

#[test]
fn a_start_while_its_breaker_is_open_is_found() {
    doctored(
        |evidence| {
            let opened = json!({"at": at(30), "type": "breaker_opened", "breaker": "b"});
            evidence.events[4]["breaker"] = json!("b");
            evidence.events.insert(4, opened);
        },
        ViolationKind::Unlawful,
        "while its breaker is open",
    );
}

#[test]
fn what_was_said_and_given_otherwise_is_found() {
    doctored(
        |evidence| {
            let work = evidence.plan.commands.get_mut("work").unwrap();
            work.given = Some("call".to_owned());
        },
        ViolationKind::Lost,
        "was said",
    );
}
