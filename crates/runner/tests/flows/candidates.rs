//! Which flows a host recovers when it starts: all stored ones that have not ended.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use undaunted_engine::catalog::{CatalogEvent, FlowLifecycle, FlowStatus};
use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::job::{JobStage, Plans};
use undaunted_runner::catalog;
use undaunted_runner::flows::RecoveredFlows;
use undaunted_runner::journal;
use undaunted_store::{SqliteStore, Store, Version};

use crate::engine::{Engine, HostOptions};
use crate::fixture::{FlowFixture, activated, now, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

fn server() -> ScriptedServer {
    ScriptedServer::start().on("/s", &[Reply::outputs(&json!({"y": 1}))])
}

fn fixture(server: &ScriptedServer) -> FlowFixture {
    let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    FlowFixture::of(&[step("s", &server.url("/s"), &attributes, &Value::Null)])
}

/// Stores flows that have no owner and no catalog entry.
fn deposited(fixture: &FlowFixture, flows: &[&str], known: &[Event]) {
    let asked = wanted("template", "s", &json!({"x": 1}));
    for flow in flows {
        fixture.deposit(flow, &asked, known);
    }
}

fn deactivated(flow: &str) -> CatalogEvent {
    CatalogEvent::FlowDeactivated {
        flow: flow.to_owned(),
        status: FlowStatus::Completed,
        error: None,
        ended: now(),
    }
}

fn recovered(engine: &Engine) -> RecoveredFlows {
    engine.host().recover().unwrap()
}

#[test]
fn recovery_lists_journals_and_skips_flows_that_have_ended() {
    let server = server();
    let fixture = fixture(&server);
    deposited(&fixture, &["active", "archiving", "done", "lost"], &[]);
    fixture.noted(vec![
        activated("active"),
        activated("archiving"),
        activated("done"),
        // A flow whose journal is gone.
        activated("phantom"),
        CatalogEvent::FlowArchiving { flow: "archiving".to_owned() },
        deactivated("done"),
    ]);
    let engine = fixture.engine();
    let found = recovered(&engine);
    assert_eq!(found.resumed, ["active", "lost"]);
    assert_eq!(found.repaired, ["lost"]);
    assert_eq!((found.owned, found.broken), (vec![], vec![]));
    engine.completes("active");
    engine.completes("lost");
    fixture.ended("active");
    fixture.ended("lost");
    // The others are unchanged.
    for (flow, place) in [("archiving", FlowLifecycle::Archiving), ("done", FlowLifecycle::Deactivated)] {
        assert_eq!(fixture.records(flow).len(), 1, "{flow}");
        assert_eq!(fixture.place(flow), Some(place));
        assert_eq!(fixture.words_of(flow).len(), 2);
    }
    assert_eq!(server.all().len(), 2);
    assert_eq!(fixture.words_of("lost"), ["flow_activated", "flow_deactivated"]);
    assert_eq!(fixture.words_of("active"), ["flow_activated", "flow_deactivated"]);
    assert_eq!(fixture.words_of("phantom"), ["flow_activated"]);
}

#[test]
fn a_flow_missing_from_the_catalog_is_added_before_it_is_resumed() {
    let server = server();
    let fixture = fixture(&server);
    let flows: Vec<String> = (0..20).map(|number| format!("f{number:02}")).collect();
    let names: Vec<&str> = flows.iter().map(String::as_str).collect();
    deposited(&fixture, &names, &[]);
    // What is on disk when the event loop gets a flow.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (noted, folder) = (Arc::clone(&seen), fixture.folder().to_owned());
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder).unwrap());
    let engine = fixture.engine_with(HostOptions {
        on_flow_added: Some(Box::new(move |job| {
            let records = catalog::records(&*store, Version::EMPTY).unwrap();
            let active = records.iter().any(|(_, record)| {
                matches!(&record.event, CatalogEvent::FlowActivated { flow, .. } if flow == job.id())
            });
            let own = journal::aggregate(job.id()).unwrap();
            let version = store.head(&own).unwrap().unwrap().version;
            noted.lock().unwrap().push((job.id().to_owned(), active, version));
        })),
        ..HostOptions::default()
    });
    let found = recovered(&engine);
    assert_eq!(found.repaired, flows);
    assert_eq!(found.resumed, flows);
    for flow in &flows {
        engine.completes(flow);
        // By the clock too.
        let added = fixture.catalog_of(flow)[0].at;
        let next = &fixture.records(flow)[1];
        assert!(matches!(next.event, Event::Job(JobEvent::Resumed(_))), "{next:?}");
        assert!(added <= next.at, "{flow}: {added:?} {next:?}");
        let CatalogEvent::FlowActivated { since, .. } = &fixture.catalog_of(flow)[0].event else {
            panic!("{flow} was not activated first");
        };
        assert_eq!(*since, fixture.records(flow)[0].at);
    }
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    let expected = flows.iter().map(|flow| (flow.clone(), true, Version(1)));
    assert_eq!(seen, expected.collect::<Vec<_>>());
}

#[test]
fn a_flow_missing_from_the_catalog_is_added_with_its_labels() {
    let server = server();
    let fixture = fixture(&server);
    let mut asked = wanted("template", "s", &json!({"x": 1}));
    asked.labels.insert("team".to_owned(), "blue".to_owned());
    fixture.deposit("lost", &asked, &[]);
    let engine = fixture.engine();
    assert_eq!(recovered(&engine).repaired, ["lost"]);
    let labels = fixture.catalog.read(|catalog| catalog.flows["lost"].labels.clone());
    assert_eq!(labels.unwrap(), asked.labels);
}

#[test]
fn a_flow_that_has_ended_is_deactivated_and_otherwise_unchanged() {
    let server = server();
    let fixture = fixture(&server);
    let completed = [Event::Job(JobEvent::Completed(Box::default()))];
    let failed = [Event::Job(JobEvent::Failed(Box::default()))];
    deposited(&fixture, &["known", "lost"], &completed);
    deposited(&fixture, &["failed"], &failed);
    fixture.noted(vec![activated("known"), activated("failed")]);
    let engine = fixture.engine();
    assert_eq!(recovered(&engine), RecoveredFlows::default());
    for (flow, status) in
        [("failed", FlowStatus::Failed), ("known", FlowStatus::Completed), ("lost", FlowStatus::Completed)]
    {
        assert_eq!(fixture.words_of(flow), ["flow_activated", "flow_deactivated"]);
        assert_eq!(fixture.records(flow).len(), 2, "{flow}");
        let entry = fixture.catalog.read(|catalog| catalog.flows[flow].clone()).unwrap();
        assert_eq!(entry.status, status);
        assert_eq!(entry.ended, Some(fixture.job(flow).times.last_at), "{flow}");
    }
    // The next time they are skipped.
    assert_eq!(recovered(&engine), RecoveredFlows::default());
    assert_eq!(fixture.words_of("lost").len(), 2);
    assert!(server.all().is_empty());
}

#[test]
fn a_suspended_flow_is_resumed_only_if_the_catalog_has_it() {
    let server = server();
    let fixture = fixture(&server);
    deposited(&fixture, &["by-hand", "ours"], &[Event::Job(JobEvent::Suspended)]);
    fixture.noted(vec![activated("ours")]);
    let engine = fixture.engine();
    let found = recovered(&engine);
    assert_eq!(found.resumed, ["ours"]);
    assert_eq!(found.repaired, Vec::<String>::new());
    engine.completes("ours");
    assert_eq!(fixture.records("by-hand").len(), 2);
    assert_eq!(fixture.job("by-hand").stage, JobStage::Suspended);
    assert_eq!(fixture.place("by-hand"), None);
    // It has no owner.
    fixture.free("by-hand");
}

#[test]
fn recovery_ignores_jobs_that_are_not_flows() {
    let server = server();
    let fixture = fixture(&server);
    fixture.deposit_shell("shell", &[]);
    let engine = fixture.engine();
    assert_eq!(recovered(&engine), RecoveredFlows::default());
    assert_eq!(fixture.records("shell").len(), 1);
    assert_eq!(fixture.words_of("shell"), Vec::<&str>::new());
    fixture.free("shell");
}

#[test]
fn recovery_leaves_flows_with_another_owner_alone() {
    let server = server();
    let fixture = fixture(&server);
    deposited(&fixture, &["free", "held"], &[]);
    let held = journal::claim(fixture.store(), "held", &Plans::default()).unwrap();
    let engine = fixture.engine();
    let found = recovered(&engine);
    assert_eq!(found.owned, ["held"]);
    assert_eq!(found.resumed, ["free"]);
    engine.completes("free");
    assert_eq!(fixture.records("held").len(), 1);
    // The owner can still write, so the flow was not claimed in between.
    journal::record_input(fixture.store(), held, &undaunted_engine::input::Input::Pause, now()).unwrap();
    assert!(fixture.records("held").len() > 1);
    let found = recovered(&engine);
    assert_eq!(found.resumed, ["held"]);
}
