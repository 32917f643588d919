//! Recovery of the flows that a server finds in its store when it starts.

use std::path::Path;

use serde_json::{Value, json};
use undaunted_store::{AggregateId, Append, SqliteStore, Store};

use crate::history::{all, assert_contains, assert_fields, has_event, outcomes};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, provider, retries};

/// A workflow file: a flow of one step.
fn flow_file(handlers: &ScriptedServer) -> String {
    let endpoint = handlers.url("/a");
    format!(
        "mode: flow\ngoals: [a]\nsteps:\n  - {{id: a, type: sync, http: {{endpoint: '{endpoint}'}}, \
         attributes: {{x: {{role: output}}}}, work_config: {{max_retries: 3, backoff: 1}}}}\n"
    )
}

/// Appends a record that cannot be read to the journal of a job.
fn damage(store: &Path, job: &str) {
    let store = SqliteStore::open(store).unwrap();
    let aggregate = AggregateId::new("job", job).unwrap();
    let claim = store.claim(&aggregate).unwrap();
    let head = store.head(&aggregate).unwrap().unwrap();
    let append = Append::new(aggregate, head.version, claim.epoch, vec![vec![1, 0xff, 0xff]]);
    store.append(vec![append]).unwrap();
    store.unclaim(&claim).unwrap();
}

fn records_of(served: &RunningServer, message: &str) -> Vec<Value> {
    let mut log = served.log();
    log.retain(|line| line["message"] == message);
    log
}

/// Waits for the end of the recovery. Returns its log record.
fn wait_for_recovery(served: &RunningServer) -> Value {
    Sandbox::eventually("the end of the recovery", || records_of(served, "resumed flows").pop())
}

#[test]
fn a_flow_from_a_file_is_resumed_after_its_process_was_killed() {
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1).gated()]);
    let sandbox = Sandbox::of(&flow_file(&handlers));
    let running = sandbox.start_run();
    handlers.wait_for("/a", 1);
    running.kill();
    let job = sandbox.job();
    let served = RunningServer::on(&sandbox);
    assert_eq!(wait_for_recovery(&served)["resumed"], 1);
    assert!(served.get("/engine").is(200)["active"][&job].is_object());
    handlers.wait_for("/a", 2);
    handlers.open("/a");
    served.wait_for_end(&job, "completed");
    served.wait_for_deactivation(&job);
    let events = sandbox.lawful_events_of(&job);
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
    let calls = handlers.requests("/a");
    assert_eq!(calls[0].token(), calls[1].token());
    let mut follower = served.follower();
    let state = follower.follow(&job);
    assert_eq!(state["data"]["status"], "completed");
}

#[test]
fn a_flow_that_is_missing_from_the_catalog_is_put_there_before_anything_else() {
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1)]);
    let sandbox = Sandbox::of(&flow_file(&handlers));
    // The job is submitted, but not in the catalog.
    let die = [("UNDAUNTED_TEST_DIE", "commit-after:1")];
    sandbox.run_with(&die).exits(-9);
    let job = sandbox.job();
    let served = RunningServer::on(&sandbox);
    let report = wait_for_recovery(&served);
    assert_fields!(report, {"resumed": 1, "repaired": 1});
    let repaired = records_of(&served, "flow was missing from the catalog");
    assert_eq!((repaired.len(), &repaired[0]["job"]), (1, &json!(job)));
    served.wait_for_end(&job, "completed");
    served.wait_for_deactivation(&job);
    let events = sandbox.lawful_events_of(&job);
    assert_eq!(outcomes(&events), ["success"]);
    let engine = served.get("/engine").is(200);
    assert_eq!(engine["flow_digests"][&job]["created_at"], all(&events, "job_submitted")[0]["at"]);
}

#[test]
fn a_flow_that_a_living_process_runs_is_not_touched() {
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1).gated()]);
    let sandbox = Sandbox::of(&flow_file(&handlers));
    let running = sandbox.start_run();
    handlers.wait_for("/a", 1);
    let job = sandbox.job();
    let before = sandbox.events_of(&job);
    let served = RunningServer::on(&sandbox);
    assert_eq!(wait_for_recovery(&served)["owned_by_others"], 1);
    assert_eq!(served.flow(&job)["status"], "active");
    assert_eq!(sandbox.events_of(&job), before);
    handlers.open("/a");
    running.wait().exits(0);
    let events = sandbox.lawful_events_of(&job);
    assert_eq!(outcomes(&events), ["success"]);
    assert!(!has_event(&events, "job_resumed"));
    assert_eq!(served.flow(&job)["status"], "completed");
    assert_eq!(handlers.all().len(), 1);
}

#[test]
fn a_broken_flow_is_reported_the_others_are_resumed_and_a_deactivated_one_is_not_read() {
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1)]).on("/held", &[Reply::x(1).gated()]);
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    served.register(&provider(&handlers, "a", &json!({})));
    served.register(&provider(&handlers, "held", &retries(5)));
    served.run_flow("over", "a", &json!({}), "completed");
    served.wait_for_deactivation("over");
    for id in ["f1", "f2", "f3"] {
        served.start_flow(id, "held", &json!({}));
    }
    handlers.wait_for("/held", 3);
    served.kill();
    damage(sandbox.store(), "over");
    damage(sandbox.store(), "f2");
    let served = RunningServer::on(&sandbox);
    let report = wait_for_recovery(&served);
    assert_fields!(report, {"resumed": 2, "broken": 1});
    let broken = records_of(&served, "flow cannot be resumed");
    assert_eq!((broken.len(), &broken[0]["job"]), (1, &json!("f2")), "{broken:?}");
    assert_eq!(broken[0]["level"], "error");
    assert_contains(&broken[0]["error"], "record");
    handlers.open("/held");
    for id in ["f1", "f3"] {
        served.wait_for_end(id, "completed");
    }
    // Requests about the broken flow get an error; others do not.
    let error = served.get("/engine/flow/f2").refused(503);
    assert!(error.contains("f2"), "{error}");
    assert_eq!(served.list().len(), 4);
    let again = json!({"id": "f2", "goals": ["held"]});
    served.post("/engine/flow", &again).refused(503);
    let mut follower = served.follower();
    let answer = follower.subscribe(&json!({"aggregate_id": ["flow", "f2"]}));
    assert_fields!(answer, {"type": "error", "status": 503});
    assert_eq!(sandbox.call(&["store", "check"]).code, 1);
    served.stop();
}
