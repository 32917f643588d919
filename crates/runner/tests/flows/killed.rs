//! The items of flows whose host was killed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use undaunted_engine::event::{Event, ItemEvent};
use undaunted_engine::job::JobStage;
use undaunted_policy::Timestamp;
use undaunted_runner::drive::DeliveryOutcome;
use undaunted_runner::flows::FlowSubmission;

use crate::engine::Engine;
use crate::fixture::{FlowFixture, async_step, step, wanted};
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};

fn ok() -> Reply {
    Reply::outputs(&json!({"y": 1}))
}

/// A flow whose host was killed during so many calls of a gated path, recovered by a second host.
fn killed_while_calling(
    fixture: &FlowFixture,
    server: &ScriptedServer,
    flow: &FlowSubmission,
    (path, calls): (&str, usize),
) -> Engine {
    let mut process = fixture.process();
    process.begin(flow);
    server.wait_for(path, calls);
    process.kill();
    server.open(path);
    let engine = fixture.engine();
    engine.host().recover().unwrap();
    engine
}

/// The recorded due times of the retries of a flow.
fn dues(fixture: &FlowFixture, flow: &str) -> Vec<Timestamp> {
    let records = fixture.records(flow);
    let dues = records.iter().filter_map(|record| match &record.event {
        Event::Item(ItemEvent::RetryScheduled(retrying)) => Some(retrying.due),
        _ => None,
    });
    dues.collect()
}

fn instant(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(at.as_nanos())
}

#[test]
fn a_running_attempt_is_interrupted_and_repeated_with_its_token_and_the_next_number() {
    let server = ScriptedServer::start().on("/s", &[ok().gated()]);
    let each = json!({"x": {"role": "required", "for_each": true}, "y": {"role": "output"}});
    let work = json!({"max_retries": 3, "backoff": 1, "parallelism": 3});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &each, &work)]);
    let mut process = fixture.process();
    process.begin(&wanted("a", "s", &json!({"x": [10, 20, 30]})));
    let before = server.wait_for("/s", 3);
    process.kill();
    server.open("/s");
    let engine = fixture.engine();
    let found = engine.host().recover().unwrap();
    assert_eq!(found.resumed, ["a"]);
    assert_eq!(found.repaired, Vec::<String>::new());
    engine.completes("a");
    let sent = server.requests("/s");
    assert_eq!(sent.len(), 6);
    let tokens = |sent: &[ReceivedRequest]| {
        let mut tokens: Vec<(String, String)> =
            sent.iter().map(|sent| (sent.json()["arguments"].to_string(), sent.token().to_owned())).collect();
        tokens.sort();
        tokens
    };
    assert_eq!(tokens(&sent[..3]), tokens(&before));
    assert_eq!(tokens(&sent[3..]), tokens(&before));
    let failed = fixture.all("a", "attempt_failed");
    assert_eq!(failed.len(), 3);
    assert!(failed.iter().all(|failed| failed["cause"] == "interrupted" && failed["attempt"] == 1));
    let started = fixture.all("a", "attempt_started");
    let numbers: Vec<&Value> = started.iter().map(|started| &started["attempt"]).collect();
    assert_eq!(numbers, [1, 1, 1, 2, 2, 2]);
    let resumed = &fixture.all("a", "job_resumed")[0];
    assert_eq!(resumed["restored"]["running"], 3);
    assert_eq!(resumed["planned"], false);
}

#[test]
fn an_interrupted_attempt_is_repeated_without_delay() {
    let server = ScriptedServer::start().on("/s", &[ok().gated()]);
    let work = json!({"max_retries": 3, "backoff": 50_000});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &work)]);
    let engine = killed_while_calling(&fixture, &server, &wanted("a", "s", &json!({})), ("/s", 1));
    let retry = FlowFixture::eventually("a retry", || fixture.all("a", "retry_scheduled").pop());
    assert_eq!(retry["delay_ms"], 0, "{retry}");
    engine.completes("a");
    assert_eq!(server.all().len(), 2);
}

#[test]
fn an_interrupted_attempt_without_retries_fails_as_interrupted() {
    let server = ScriptedServer::start().on("/s", &[ok().gated()]);
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &json!({"max_retries": 0}))]);
    let engine = killed_while_calling(&fixture, &server, &wanted("a", "s", &json!({})), ("/s", 1));
    assert_eq!(engine.left("a"), Ok(JobStage::Failed));
    assert_eq!(server.all().len(), 1);
    assert_eq!(fixture.all("a", "attempt_failed")[0]["cause"], "interrupted");
}

#[test]
fn a_waiting_retry_keeps_its_due_time_after_a_kill() {
    let server = ScriptedServer::start().on("/s", &[Reply::status(503), ok()]);
    let work = json!({"max_retries": 3, "backoff": 2500, "backoff_type": "fixed"});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &work)]);
    let mut process = fixture.process();
    process.begin(&wanted("a", "s", &json!({})));
    FlowFixture::eventually("a wait", || (!dues(&fixture, "a").is_empty()).then_some(()));
    process.kill();
    let before = dues(&fixture, "a");
    let engine = fixture.engine();
    engine.host().recover().unwrap();
    let resumed = SystemTime::now();
    assert!(resumed < instant(before[0]), "too slow a machine for this test");
    engine.completes("a");
    assert_eq!(dues(&fixture, "a"), before);
    let sent = server.requests("/s");
    assert_eq!(sent.len(), 2);
    assert!(sent[1].at >= instant(before[0]), "{sent:?} {before:?}");
    assert_eq!(sent[0].token(), sent[1].token());
    assert_eq!(fixture.all("a", "job_resumed")[0]["restored"]["waiting"], 1);
    assert_eq!(fixture.all("a", "retry_scheduled").len(), 1);
}

#[test]
fn a_retry_that_fell_due_without_a_host_starts_at_once() {
    let server = ScriptedServer::start().on("/s", &[Reply::status(503), ok()]);
    let work = json!({"max_retries": 3, "backoff": 300, "backoff_type": "fixed"});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &work)]);
    let mut process = fixture.process();
    process.begin(&wanted("a", "s", &json!({})));
    FlowFixture::eventually("a wait", || (!dues(&fixture, "a").is_empty()).then_some(()));
    process.kill();
    FlowFixture::eventually("its time", || {
        (SystemTime::now() > instant(dues(&fixture, "a")[0])).then_some(())
    });
    let engine = fixture.engine();
    engine.host().recover().unwrap();
    engine.completes("a");
    assert_eq!(server.all().len(), 2);
    assert_eq!(fixture.all("a", "retry_scheduled").len(), 1);
}

#[test]
fn pending_items_of_an_active_step_begin_once() {
    let server = ScriptedServer::start().on("/s", &[ok().gated()]);
    let each = json!({"x": {"role": "required", "for_each": true}, "y": {"role": "output"}});
    let work = json!({"max_retries": 3, "backoff": 1, "parallelism": 1});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &each, &work)]);
    let engine =
        killed_while_calling(&fixture, &server, &wanted("a", "s", &json!({"x": [1, 2, 3]})), ("/s", 1));
    engine.completes("a");
    let mut asked: Vec<u64> =
        server.all().iter().map(|sent| sent.json()["arguments"]["x"].as_u64().unwrap()).collect();
    asked.sort_unstable();
    assert_eq!(asked, [1, 1, 2, 3]);
    assert_eq!(fixture.all("a", "job_resumed")[0]["restored"]["pending"], 2);
}

#[test]
fn completed_items_are_not_repeated_and_the_next_step_begins() {
    let server = ScriptedServer::start().on("/first", &[ok()]).on("/second", &[ok().gated()]);
    let fixture = FlowFixture::of(&[
        step("first", &server.url("/first"), &json!({"y": {"role": "output"}}), &Value::Null),
        step(
            "second",
            &server.url("/second"),
            &json!({"y": {"role": "required"}}),
            &json!({"max_retries": 1, "backoff": 1}),
        ),
    ]);
    let engine = killed_while_calling(&fixture, &server, &wanted("a", "second", &json!({})), ("/second", 1));
    engine.completes("a");
    assert_eq!(server.requests("/first").len(), 1);
    assert_eq!(server.requests("/second").len(), 2);
}

#[test]
fn an_accepted_attempt_is_awaited_and_not_repeated() {
    let server = ScriptedServer::start().on("/s", &[ok()]);
    let y = json!({"y": {"role": "output"}});
    let fixture = FlowFixture::of(&[async_step("s", &server.url("/s"), &y, &Value::Null)]);
    let mut process = fixture.process();
    process.begin(&wanted("a", "s", &json!({})));
    let sent = server.wait_for("/s", 1);
    fixture.accepted("a");
    process.kill();
    let engine = fixture.engine();
    assert_eq!(engine.host().recover().unwrap().resumed, ["a"]);
    FlowFixture::eventually("a resume", || fixture.all("a", "job_resumed").pop());
    let answer = engine.deliver("a", "s", sent[0].token(), r#"{"y": 7}"#);
    assert_eq!(answer, Some(DeliveryOutcome::Taken));
    engine.completes("a");
    assert_eq!(server.all().len(), 1);
    assert_eq!(fixture.all("a", "attempt_started").len(), 1);
    assert_eq!(fixture.job("a").attributes["y"].value, json!(7));
}

#[test]
fn a_host_killed_repeatedly_completes_all_its_flows() {
    const FLOWS: usize = 12;
    let server = ScriptedServer::start().by("/s", |_| ok());
    let attributes = |from: &str, to: &str| json!({from: {"role": "required"}, to: {"role": "output", "mapping": {"name": "y"}}});
    let work = json!({"max_retries": -1, "backoff": 1, "backoff_type": "fixed"});
    let fixture = FlowFixture::of(&[
        step("one", &server.url("/s"), &attributes("x", "a"), &work),
        step("two", &server.url("/s"), &attributes("a", "b"), &work),
        step("three", &server.url("/s"), &attributes("b", "c"), &work),
    ]);
    let mut process = fixture.process();
    for flow in 0..FLOWS {
        process.begin(&wanted(&format!("f{flow}"), "three", &json!({"x": flow})));
        if flow % 3 == 2 {
            server.wait_for("/s", flow);
            process.kill();
            process = fixture.process();
            let found = process.recover();
            assert_eq!(found["owned"], json!([]), "{found}");
        }
    }
    for flow in 0..FLOWS {
        let flow = format!("f{flow}");
        assert_eq!(fixture.ended(&flow).stage, JobStage::Completed);
        // Three successes, and everything else that was sent was interrupted.
        assert_eq!(fixture.all(&flow, "attempt_succeeded").len(), 3);
        let failed = fixture.all(&flow, "attempt_failed");
        assert!(failed.iter().all(|failed| failed["cause"] == "interrupted"), "{failed:?}");
        let started = fixture.all(&flow, "attempt_started").len();
        assert_eq!(started, 3 + failed.len());
    }
}
