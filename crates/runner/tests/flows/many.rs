//! Many flows at once in one host, and a host that shuts down.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use undaunted_engine::catalog::FlowLifecycle;
use undaunted_engine::job::JobStage;
use undaunted_runner::breakers;
use undaunted_runner::flows::BeginError;

use crate::fixture::{FlowFixture, async_step, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

#[test]
fn a_thousand_flows_at_once_call_every_step_exactly_once() {
    const FLOWS: usize = 1000;
    let server = ScriptedServer::start()
        .by("/double", |sent| {
            let x = sent.json()["arguments"]["x"].as_u64().unwrap();
            Reply::outputs(&json!({"y": 2 * x}))
        })
        .by("/add", |sent| {
            let y = sent.json()["arguments"]["y"].as_u64().unwrap();
            Reply::outputs(&json!({"z": y + 1}))
        });
    let attributes = |from: &str, to: &str| json!({from: {"role": "required"}, to: {"role": "output"}});
    let fixture = FlowFixture::of(&[
        step("double", &server.url("/double"), &attributes("x", "y"), &Value::Null),
        step("add", &server.url("/add"), &attributes("y", "z"), &Value::Null),
    ]);
    let engine = fixture.engine();
    for flow in 0..FLOWS {
        engine.start(&wanted(&format!("f{flow}"), "add", &json!({"x": flow})));
    }
    for flow in 0..FLOWS {
        engine.completes(&format!("f{flow}"));
    }
    let mut calls: BTreeMap<(String, String), usize> = BTreeMap::new();
    for sent in server.all() {
        let metadata = sent.json()["metadata"].clone();
        let of = ["flow_id", "step_id"].map(|key| metadata[key].as_str().unwrap().to_owned());
        *calls.entry(of.into()).or_default() += 1;
    }
    assert_eq!(calls.len(), 2 * FLOWS);
    assert!(calls.values().all(|calls| *calls == 1));
    for flow in [0, 1, 500, 999] {
        let job = fixture.job(&format!("f{flow}"));
        assert_eq!(job.attributes["z"].value, json!(2 * flow + 1));
    }
    assert_eq!(engine.all_left().len(), FLOWS);
    // Each was added to the catalog once, and is deactivated.
    FlowFixture::eventually("the end of all flows", || {
        let done = fixture.catalog.read(|catalog| {
            let mut flows = catalog.flows.values();
            flows.all(|flow| flow.lifecycle == FlowLifecycle::Deactivated)
        });
        done.unwrap().then_some(())
    });
    let records = fixture.catalog.cached(|_, version| version.0);
    assert_eq!(records, 2 + 2 * u64::try_from(FLOWS).unwrap());
}

#[test]
fn a_host_that_shuts_down_suspends_its_flows_and_all_can_be_resumed() {
    let server = ScriptedServer::start()
        .on("/gated", &[Reply::outputs(&json!({})).gated()])
        .on("/later", &[Reply::outputs(&json!({}))])
        .on("/failing", &[Reply::status(503)]);
    let work = json!({"max_retries": 3, "backoff": 1500, "backoff_type": "fixed"});
    let y = json!({"y": {"role": "output"}});
    let gated = json!({"g": {"role": "required", "for_each": true}});
    let one = json!({"max_retries": 3, "parallelism": 1});
    let fixture = FlowFixture::of(&[
        step("gated", &server.url("/gated"), &gated, &one),
        async_step("later", &server.url("/later"), &y, &work),
        step("failing", &server.url("/failing"), &json!({}), &work),
    ]);
    let engine = fixture.engine();
    let flows = ["running", "accepted", "waiting"];
    engine.start(&wanted("running", "gated", &json!({"g": [1, 2]})));
    engine.start(&wanted("accepted", "later", &json!({})));
    engine.start(&wanted("waiting", "failing", &json!({})));
    server.wait_for("/gated", 1);
    fixture.accepted("accepted");
    FlowFixture::eventually("a wait", || fixture.all("waiting", "retry_scheduled").pop());
    engine.host().interrupt();
    // Running attempts finish; nothing new starts.
    for flow in ["accepted", "waiting"] {
        assert_eq!(engine.left(flow), Ok(JobStage::Suspended), "{flow}");
    }
    server.open("/gated");
    engine.host().wait();
    for flow in flows {
        assert_eq!(engine.left(flow), Ok(JobStage::Suspended), "{flow}");
        assert_eq!(fixture.place(flow), Some(FlowLifecycle::Active));
        assert_eq!(fixture.all(flow, "job_suspended").len(), 1);
        assert_eq!(fixture.all(flow, "attempt_started").len(), 1);
    }
    drop(engine);
    server.answers("/failing", &[Reply::outputs(&json!({}))]);
    let engine = fixture.engine();
    let mut resumed = engine.host().recover().unwrap().resumed;
    resumed.sort();
    assert_eq!(resumed, ["accepted", "running", "waiting"]);
    let token = server.requests("/later")[0].token().to_owned();
    engine.deliver("accepted", "later", &token, r#"{"y": 1}"#).unwrap();
    for flow in flows {
        engine.completes(flow);
        assert_eq!(fixture.all(flow, "job_resumed")[0]["planned"], true);
        assert_eq!(fixture.all(flow, "attempt_failed").len(), usize::from(flow == "waiting"));
    }
    assert_eq!(server.requests("/gated").len(), 2);
    assert_eq!(server.requests("/later").len(), 1);
    assert_eq!(server.requests("/failing").len(), 2);
}

#[test]
fn a_host_that_shuts_down_begins_nothing_new() {
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({}))]);
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &Value::Null)]);
    let engine = fixture.engine();
    engine.suspend();
    let refused = engine.host().start(&wanted("a", "s", &json!({})));
    assert!(matches!(refused, Err(BeginError::Leaving)), "{refused:?}");
    drop(engine);
    assert!(server.all().is_empty());
    let engine = fixture.engine();
    assert_eq!(engine.host().recover().unwrap().resumed, [""; 0]);
}

#[test]
fn a_host_interrupted_twice_ends_at_once_and_its_attempts_are_repeated() {
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({})).gated()]);
    let work = json!({"max_retries": 3, "backoff": 1});
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &work)]);
    let engine = fixture.engine();
    engine.start(&wanted("a", "s", &json!({})));
    server.wait_for("/s", 1);
    // Dropping it interrupts it twice.
    drop(engine);
    assert_eq!(fixture.all("a", "attempt_failed")[0]["cause"], "interrupted");
    server.open("/s");
    let engine = fixture.engine();
    assert_eq!(engine.host().recover().unwrap().resumed, ["a"]);
    engine.completes("a");
    let sent = server.requests("/s");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].token(), sent[1].token());
}

#[test]
fn a_breaker_without_history_counts_its_first_failure_once() {
    const PLACES: usize = 150;
    let place = |_| ScriptedServer::start().on("/s", &[Reply::status(503).gated()]);
    let places: Vec<ScriptedServer> = (0..PLACES).map(place).collect();
    let steps = places.iter().enumerate().map(|(n, server)| {
        let work = json!({"max_retries": 0});
        step(&format!("s{n}"), &server.url("/s"), &json!({}), &work)
    });
    let fixture = FlowFixture::of(&steps.collect::<Vec<Value>>());
    let engine = fixture.engine();
    for n in 0..PLACES {
        engine.start(&wanted(&format!("f{n}"), &format!("s{n}"), &json!({})));
    }
    for server in &places {
        server.wait_for("/s", 1);
    }
    // All fail at once, each at its own server.
    for server in &places {
        server.open("/s");
    }
    for n in 0..PLACES {
        assert_eq!(engine.left(&format!("f{n}")), Ok(JobStage::Failed));
    }
    let known = breakers::list(fixture.store()).unwrap();
    assert_eq!(known.len(), PLACES);
    for (name, record) in known {
        assert_eq!(record.state.failures(), 1, "{name}");
    }
}
