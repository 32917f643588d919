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

/// Falsifies sound it and expects the violation.
#[track_caller]
fn falsified(change: impl FnOnce(&mut SoundEvidence), kind: ViolationKind, word: &str) {
    let mut it = sound();
    change(&mut it);
    let findings = it.compared();
    let mut all = findings.violations.iter();
    assert!(all.any(|found| found.kind == kind && found.what.contains(word)), "{word}: {findings:#?}");
}

#[test]
fn a_sound_record_breaks_no_promise_and_its_lateness_is_measured() {
    let findings = sound().compared();
    assert_eq!(findings.violations, []);
    assert_eq!((findings.waits, findings.lateness), (1, 3000));
}

#[test]
fn an_attempt_begun_twice_is_found() {
    falsified(|it| it.runs.push(run(2, 2, 45, 47, 0)), Duplicated, "begun twice");
}

#[test]
fn an_attempt_beside_another_is_found() {
    falsified(|it| it.runs[1].begin.overlaps = true, Duplicated, "while another attempt was alive");
    falsified(|it| it.calls[0].overlaps = true, Duplicated, "was under way");
}

#[test]
fn a_success_that_never_came_to_its_end_is_found() {
    falsified(|it| it.runs[1].end = None, Lost, "never came");
    falsified(|it| it.runs[1].end = Some((micros(48), 1)), Lost, "never came");
    falsified(|it| drop(it.runs.pop()), Lost, "never ran");
}

#[test]
fn an_end_that_is_not_the_one_on_record_is_found() {
    falsified(|it| it.runs[0].end = Some((micros(18), 0)), Lost, "not with 3");
}

#[test]
fn a_result_thrown_away_is_found_unless_its_keeper_died() {
    let cut = |it: &mut SoundEvidence| {
        it.events[2]["cause"] = json!("interrupted");
    };
    falsified(cut, Lost, "its keeper was not killed");
    let mut it = sound();
    cut(&mut it);
    it.kills.keepers = vec![micros(15)];
    assert_eq!(it.compared().violations, []);
    // A keeper that died before, or long after, does not excuse it.
    it.kills.keepers = vec![micros(5), micros(60)];
    assert_ne!(it.compared().violations, []);
}

#[test]
fn a_begin_before_it_was_due_or_on_record_is_found() {
    falsified(|it| it.runs[1].begin.at = micros(39), Unlawful, "1000 µs before it was due");
    falsified(|it| it.runs[0].begin.at = micros(9), Unlawful, "before its start was on record");
    falsified(|it| it.events[4]["at"] = json!(at(30)), Unlawful, "started before it is due");
}

#[test]
fn a_begin_after_the_end_on_record_is_found() {
    falsified(|it| it.runs[1].begin.at = micros(90), Duplicated, "after its end was on record");
}

#[test]
fn what_ran_and_is_not_on_record_is_found() {
    falsified(|it| it.runs.push(run(3, 9, 55, 57, 0)), Lost, "its start is not on record");
}

#[test]
fn more_attempts_than_allowed_are_found() {
    falsified(
        |it| {
            let none = PlannedCommand::of(CommandKind::Process, DrawnPolicy::none());
            it.plan.commands.insert("work".to_owned(), none);
        },
        Duplicated,
        "more attempts than the allowed",
    );
}

#[test]
fn a_start_after_the_success_is_found() {
    falsified(
        |it| {
            let mut again = it.events[4].clone();
            again["start"] = json!(9);
            again["attempt"] = json!(3);
            it.events.insert(6, again);
        },
        Duplicated,
        "its success is on record",
    );
}

#[test]
fn a_wait_that_was_drawn_again_or_restarted_is_found() {
    falsified(|it| it.events[3]["delay_ms"] = json!(25), Unlawful, "a delay from 20 to 20 ms");
    falsified(|it| it.events[3]["due_at"] = json!(at(38)), Unlawful, "after it was decided");
    falsified(
        |it| {
            let again = it.events[3].clone();
            it.events.insert(4, again);
        },
        Duplicated,
        "scheduled twice",
    );
}

#[test]
fn sums_that_do_not_come_out_are_found() {
    falsified(|it| it.events[3]["spent_before_ms"] = json!(7), Unlawful, "were spent before");
    falsified(|it| it.events[3]["pool"]["used"] = json!(1), Unlawful, "were charged before");
    falsified(|it| it.plan.pool = Some((0, 0)), Unlawful, "is exceeded");
}

#[test]
fn a_job_or_an_item_that_never_ends_is_found() {
    falsified(|it| drop(it.events.pop()), Lost, "the job never ends");
    falsified(
        |it| {
            it.events.insert(1, json!({"at": at(2), "type": "items_read"}));
            it.plan.items = vec!["gone".to_owned()];
        },
        Lost,
        "item gone never ends",
    );
    falsified(
        |it| {
            let again = it.events[6].clone();
            it.events.insert(7, again);
        },
        Duplicated,
        "ends twice",
    );
}

#[test]
fn a_missing_event_is_found() {
    falsified(|it| it.events[5]["seq"] = json!(7), Lost, "event 6 is missing");
}

#[test]
fn a_request_too_many_or_one_that_was_never_sent_is_found() {
    falsified(|it| it.calls.push(call("call", 55)), Duplicated, "2 requests of call");
    falsified(|it| drop(it.calls.remove(0)), Lost, "no response 200");
    falsified(|it| it.calls[0].begin = micros(100), Duplicated, "had ended");
    falsified(|it| it.calls[0].status = Some(503), Lost, "no response 200");
}

#[test]
fn a_result_that_was_taken_and_is_not_on_record_is_found() {
    falsified(
        |it| {
            it.events[10]["type"] = json!("attempt_failed");
            it.events[10]["cause"] = json!("interrupted");
        },
        Lost,
        "answered 200 and is not on record",
    );
    falsified(|it| it.posted.clear(), Lost, "was never sent");
    falsified(|it| it.posted[0].refused = Some(404), Lost, "was refused");
}

#[test]
fn a_token_that_changes_is_found() {
    falsified(|it| it.runs[1].begin.token = "other".to_owned(), Unlawful, "not its own for ever");
}

#[test]
fn a_start_while_its_breaker_is_open_is_found() {
    falsified(
        |it| {
            let opened = json!({"at": at(30), "type": "breaker_opened", "breaker": "b"});
            it.events[4]["breaker"] = json!("b");
            it.events.insert(4, opened);
        },
        Unlawful,
        "while its breaker is open",
    );
}

#[test]
fn what_was_said_and_given_otherwise_is_found() {
    falsified(
        |it| {
            let work = it.plan.commands.get_mut("work").unwrap();
            work.given = Some("call".to_owned());
        },
        Lost,
        "was said",
    );
}
