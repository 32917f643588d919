//! A store that refuses a write: nothing is reported before it is on disk, and everything is consistent when
//! the store can be written again.

use std::sync::Arc;

use serde_json::{Value, json};
use undaunted_engine::catalog::FlowLifecycle;
use undaunted_engine::job::JobStage;
use undaunted_runner::breakers;
use undaunted_runner::flows::BegunFlow;
use undaunted_store::{Append, Fault, Faults, FaultyStore, SqliteStore, StoreError};

use crate::engine::{Engine, HostOptions};
use crate::fixture::{FlowFixture, activated, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

/// A host whose store has these faults.
fn engine(fixture: &FlowFixture, faults: &Faults) -> Engine {
    let inner = SqliteStore::open(fixture.folder()).unwrap();
    let store = FaultyStore::new(Box::new(inner), faults.clone());
    Engine::on(Arc::new(store), fixture.folder(), HostOptions::default())
}

/// Lets the n-th append from now on fail with a full disk. Nothing is being written when this is called.
fn refuse(faults: &Faults, n: u64) {
    let error = StoreError::DiskFull { path: "here".into() };
    let at = faults.appends() + n;
    drop(faults.clone().at_append(at, Fault::Refuse(error)));
}

/// A server with a step that answers when the test opens its gate.
fn gated() -> ScriptedServer {
    ScriptedServer::start().on("/inner", &[Reply::outputs(&json!({"y": 7})).gated()])
}

/// A flow `outer`, whose only item waits for a sub-flow with the step `inner`.
fn fixture(server: &ScriptedServer) -> FlowFixture {
    let given = json!({"y": {"role": "output"}});
    let work = json!({"max_retries": 2, "backoff": 1});
    FlowFixture::of(&[
        step("inner", &server.url("/inner"), &given, &work),
        json!({
            "id": "outer", "type": "flow", "flow": {"goals": ["inner"]}, "attributes": given,
        }),
    ])
}

/// Starts the flow `a`, waits until its sub-flow calls its step, and returns the name of the sub-flow.
fn inner_flow(fixture: &FlowFixture, server: &ScriptedServer, engine: &Engine) -> String {
    engine.start(&wanted("a", "outer", &json!({})));
    let called = server.wait_for("/inner", 1);
    let flow = called[0].json()["metadata"]["flow_id"].clone();
    let flow = flow.as_str().unwrap();
    FlowFixture::eventually("the item waits", || fixture.all("a", "attempt_accepted").pop());
    FlowFixture::eventually("a catalog entry", || fixture.place(flow));
    flow.to_owned()
}

#[test]
fn an_end_that_could_not_be_written_is_not_reported_and_is_reached_after_a_restart() {
    let server = gated();
    let fixture = fixture(&server);
    let faults = Faults::none();
    let first = engine(&fixture, &faults);
    let flow = &*inner_flow(&fixture, &server, &first);
    refuse(&faults, 1);
    server.open("/inner");
    let why = first.left(flow).unwrap_err();
    assert!(why.contains("full"), "{why}");
    // All earlier notes are written now.
    first.host().catalog().flush().unwrap();
    assert_eq!(fixture.place(flow), Some(FlowLifecycle::Active));
    assert_eq!(fixture.all(flow, "job_completed"), Vec::<Value>::new());
    first.suspend();
    assert_eq!(first.left("a"), Ok(JobStage::Suspended));
    assert_eq!(fixture.all("a", "attempt_succeeded"), Vec::<Value>::new());
    drop(first);

    let second = fixture.engine();
    assert_eq!(second.host().recover().unwrap().resumed, ["a", flow]);
    second.completes(flow);
    second.completes("a");
    assert_eq!(fixture.ended(flow).stage, JobStage::Completed);
    let y = fixture.ended("a").attributes["y"].value.clone();
    assert_eq!(y, json!(7));
    // The answer was not recorded, so the step is called again with the same token.
    let calls = server.requests("/inner");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].token(), calls[1].token());
}

#[test]
fn a_flow_whose_catalog_entry_cannot_be_written_is_resumed_by_the_next_recovery() {
    let server = gated();
    server.open("/inner");
    let fixture = fixture(&server);
    for flow in ["a", "b"] {
        fixture.deposit(flow, &wanted("template", "inner", &json!({})), &[]);
    }
    let faults = Faults::none();
    let engine = engine(&fixture, &faults);
    refuse(&faults, 1);
    let why = engine.host().recover().unwrap_err();
    assert!(format!("{why:?}").contains("DiskFull"), "{why:?}");
    for flow in ["a", "b"] {
        fixture.free(flow);
        assert_eq!(fixture.records(flow).len(), 1, "nothing happened to {flow}");
    }
    let found = engine.host().recover().unwrap();
    assert_eq!(found.resumed, ["a", "b"]);
    engine.completes("a");
    engine.completes("b");
    assert_eq!(server.requests("/inner").len(), 2);
}

#[test]
fn a_failed_catalog_note_does_not_keep_orphaned_flows_from_being_resumed() {
    let server = gated();
    let fixture = fixture(&server);
    let faults = Faults::none();
    let engine = engine(&fixture, &faults);
    engine.start(&wanted("a", "inner", &json!({})));
    server.wait_for("/inner", 1);
    fixture.deposit("orphan", &wanted("template", "inner", &json!({})), &[]);
    fixture.noted(vec![activated("orphan")]);
    // The end of the flow is written, and the catalog note is not.
    refuse(&faults, 2);
    server.open("/inner");
    engine.completes("a");
    assert!(engine.host().resume_orphans(&mut String::new()).is_err());
    fixture.free("orphan");
    assert_eq!(fixture.records("orphan").len(), 1);
    let found = engine.host().resume_orphans(&mut String::new()).unwrap();
    assert_eq!(found.resumed, ["orphan"]);
    engine.completes("orphan");
    assert_eq!(fixture.ended("a").stage, JobStage::Completed);
    assert_eq!(fixture.ended("orphan").stage, JobStage::Completed);
    assert_eq!(server.requests("/inner").len(), 2);
}

#[test]
fn a_flow_that_cannot_be_entered_in_the_catalog_runs_and_is_entered_later() {
    let server = gated();
    let fixture = fixture(&server);
    let faults = Faults::none();
    let engine = engine(&fixture, &faults);
    // The flow is written, and the catalog note is not.
    refuse(&faults, 2);
    let asked = wanted("a", "inner", &json!({}));
    assert_eq!(engine.host().start(&asked).unwrap(), BegunFlow::Now);
    assert_eq!(fixture.place("a"), None);
    server.wait_for("/inner", 1);
    assert_eq!(engine.host().start(&asked).unwrap(), BegunFlow::Before);
    server.open("/inner");
    engine.completes("a");
    assert_eq!(fixture.ended("a").stage, JobStage::Completed);
    assert_eq!(server.requests("/inner").len(), 1);
}

#[test]
fn after_an_outage_nothing_is_written_twice() {
    for stored in [false, true] {
        let server = gated();
        let fixture = fixture(&server);
        let faults = Faults::none();
        let engine = engine(&fixture, &faults);
        let flow = &*inner_flow(&fixture, &server, &engine);
        let outage = Fault::Outage { stored, questions: 2 };
        drop(faults.clone().at_append(faults.appends() + 1, outage));
        server.open("/inner");
        engine.completes(flow);
        engine.completes("a");
        for flow in [flow, "a"] {
            assert_eq!(fixture.all(flow, "attempt_succeeded").len(), 1, "{stored}");
            assert_eq!(fixture.all(flow, "job_completed").len(), 1);
        }
        assert_eq!(server.requests("/inner").len(), 1);
        let told = engine.outages.lock().unwrap().clone();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("the store `faulty` cannot be reached: "));
        assert!(told[1].starts_with("the store can be reached again after "));
    }
}

#[test]
fn a_catalog_note_that_fails_in_an_outage_is_written_afterwards() {
    let server = gated();
    let fixture = fixture(&server);
    let faults = Faults::none();
    let engine = engine(&fixture, &faults);
    // The flow is written, and an outage begins with the catalog note.
    let outage = Fault::Outage { stored: false, questions: 1 };
    drop(faults.clone().at_append(faults.appends() + 2, outage));
    engine.start(&wanted("a", "inner", &json!({})));
    FlowFixture::eventually("a catalog entry", || fixture.place("a"));
    server.open("/inner");
    engine.completes("a");
    assert_eq!(server.requests("/inner").len(), 1);
}

#[test]
fn an_unreadable_breaker_fails_its_flow_and_does_not_spin_the_loop() {
    let (broken, fine) = (gated(), gated());
    let given = json!({"y": {"role": "output"}});
    let fixture = FlowFixture::of(&[
        step("broken", &broken.url("/inner"), &given, &Value::Null),
        step("fine", &fine.url("/inner"), &given, &Value::Null),
    ]);
    let journal = breakers::aggregate(&broken.url("")).unwrap();
    let damaged = Append::facts(journal, vec![b"no record".to_vec()]);
    let _ = fixture.store().append(vec![damaged]).unwrap();
    let faults = Faults::none();
    let engine = engine(&fixture, &faults);
    engine.start(&wanted("a", "broken", &json!({})));
    let why = engine.left("a").unwrap_err();
    assert!(why.contains("breaker"), "{why}");
    let before = faults.questions();
    engine.start(&wanted("b", "fine", &json!({})));
    fine.wait_for("/inner", 1);
    fine.open("/inner");
    engine.completes("b");
    let asked = faults.questions() - before;
    assert!(asked < 100, "{asked} questions for one flow");
}
