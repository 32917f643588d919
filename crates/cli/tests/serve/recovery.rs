//! What a server finds in its store when it starts.

use std::path::Path;

use serde_json::{Value, json};
use undaunted_store::{AggregateId, Append, SqliteStore, Store};

use crate::history::{all, is_lawful, outcomes};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, says};
use crate::world::World;

/// A flow by file, with one step.
fn file(handlers: &StepServer) -> String {
    let endpoint = handlers.url("/a");
    format!(
        "mode: flow\ngoals: [a]\nsteps:\n  - {{id: a, type: sync, http: {{endpoint: '{endpoint}'}}, \
         attributes: {{x: {{role: output}}}}, work_config: {{max_retries: 3, backoff: 1}}}}\n"
    )
}

/// Writes something behind the journal of a job that nobody can read.
fn damage(store: &Path, job: &str) {
    let store = SqliteStore::open(store).unwrap();
    let aggregate = AggregateId::new("job", job).unwrap();
    let claim = store.claim(&aggregate).unwrap();
    let head = store.head(&aggregate).unwrap().unwrap();
    let append = Append::new(aggregate, head.version, claim.epoch, vec![vec![1, 0xff, 0xff]]);
    store.append(vec![append]).unwrap();
    store.unclaim(&claim).unwrap();
}

fn logged(served: &Served, message: &str) -> Vec<Value> {
    let mut log = served.log();
    log.retain(|line| line["message"] == message);
    log
}

/// Waits until the server has looked through the store.
fn recovered(served: &Served) -> Value {
    World::eventually("the end of the recovery", || logged(served, "resumed flows").pop())
}

#[test]
fn a_flow_by_file_whose_process_was_killed_is_gone_on_with() {
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1})).gated()]);
    let world = World::of(&file(&handlers));
    let running = world.spawn(&["run", "w.yaml", "--json"]);
    handlers.wait_for("/a", 1);
    running.kill();
    let job = world.job();
    let served = Served::on(&world);
    assert_eq!(recovered(&served)["resumed"], 1);
    assert!(served.get("/engine").is(200)["active"][&job].is_object());
    handlers.wait_for("/a", 2);
    handlers.open("/a");
    served.ends(&job, "completed");
    served.deactivated(&job);
    let events = world.events_of(&job);
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
    let calls = handlers.requests("/a");
    assert_eq!(calls[0].token(), calls[1].token());
    let mut follower = served.follower();
    let state = follower.follow(&job);
    assert_eq!(state["data"]["status"], "completed");
}

#[test]
fn a_flow_that_is_missing_from_the_catalog_is_put_there_before_anything_else() {
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]);
    let world = World::of(&file(&handlers));
    // It is submitted, and nothing more.
    let die = [("UNDAUNTED_TEST_DIE", "commit-after:1")];
    world.call_with(&["run", "w.yaml", "--json"], &die).exits(-9);
    let job = world.job();
    let served = Served::on(&world);
    let told = recovered(&served);
    assert_eq!((&told["resumed"], &told["repaired"]), (&json!(1), &json!(1)));
    let repaired = logged(&served, "flow was missing from the catalog");
    assert_eq!((repaired.len(), &repaired[0]["job"]), (1, &json!(job)));
    served.ends(&job, "completed");
    served.deactivated(&job);
    let events = world.events_of(&job);
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["success"]);
    let engine = served.get("/engine").is(200);
    assert_eq!(engine["flow_digests"][&job]["created_at"], all(&events, "job_submitted")[0]["at"]);
}

#[test]
fn a_flow_that_a_living_process_runs_is_not_touched() {
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1})).gated()]);
    let world = World::of(&file(&handlers));
    let running = world.spawn(&["run", "w.yaml", "--json"]);
    handlers.wait_for("/a", 1);
    let job = world.job();
    let before = world.events_of(&job);
    let served = Served::on(&world);
    assert_eq!(recovered(&served)["owned_by_others"], 1);
    assert_eq!(served.flow(&job)["status"], "active");
    assert_eq!(world.events_of(&job), before);
    handlers.open("/a");
    running.wait().exits(0);
    let events = world.events_of(&job);
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["success"]);
    assert!(all(&events, "job_resumed").is_empty());
    assert_eq!(served.flow(&job)["status"], "completed");
    assert_eq!(handlers.all().len(), 1);
}

#[test]
fn a_broken_flow_is_reported_and_the_others_go_on_and_a_deactivated_one_is_not_read() {
    let handlers = StepServer::start()
        .on("/a", &[Reply::outputs(&json!({"x": 1}))])
        .on("/held", &[Reply::outputs(&json!({"x": 1})).gated()]);
    let world = World::new();
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({})));
    served.register(&giver(&handlers, "held", &json!({"max_retries": 5, "backoff": 1})));
    served.begin("over", "a", &json!({}));
    served.ends("over", "completed");
    served.deactivated("over");
    for id in ["f1", "f2", "f3"] {
        served.begin(id, "held", &json!({}));
    }
    handlers.wait_for("/held", 3);
    served.kill();
    damage(world.store(), "over");
    damage(world.store(), "f2");
    let served = Served::on(&world);
    let told = recovered(&served);
    assert_eq!((&told["resumed"], &told["broken"]), (&json!(2), &json!(1)));
    let broken = logged(&served, "flow cannot be resumed");
    assert_eq!((broken.len(), &broken[0]["job"]), (1, &json!("f2")), "{broken:?}");
    assert_eq!(broken[0]["level"], "error");
    says(&broken[0]["error"], "record");
    handlers.open("/held");
    for id in ["f1", "f3"] {
        served.ends(id, "completed");
    }
    // It is said to whoever asks, and does no harm.
    let error = served.get("/engine/flow/f2").refused(503);
    assert!(error.contains("f2"), "{error}");
    assert_eq!(served.get("/engine/flow").is(200)["count"], 4);
    let again = json!({"id": "f2", "goals": ["held"]});
    served.post("/engine/flow", &again).refused(503);
    let mut follower = served.follower();
    let answer = follower.subscribe(&json!({"aggregate_id": ["flow", "f2"]}));
    assert_eq!((&answer["type"], &answer["status"]), (&json!("error"), &json!(503)));
    assert_eq!(world.call(&["store", "check"]).code, 1);
    served.end();
}
