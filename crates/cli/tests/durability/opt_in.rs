//! Breakers are opt-in: what a job does that asks for none, what one is called that has no name, and
//! what a job keeps that was stored when every origin had one.

use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use undaunted_engine::event::JobSubmitted;
use undaunted_engine::job::Plans;
use undaunted_policy::Timestamp;
use undaunted_runner::journal;
use undaunted_store::SqliteStore;

use crate::history::{all, is_lawful};
use crate::http_server::{Reply, StepServer};
use crate::world::World;

/// An origin where nobody listens.
fn dead_origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// One request that is sent eight times at most.
fn eight_times(origin: &str, more: &str) -> String {
    format!(
        "
- id: call
  http: {{url: '{origin}/a'}}
  retry_config: {{attempts: 7, backoff: fixed, initial_delay: 20ms}}
{more}"
    )
}

/// The delays that were scheduled, in milliseconds.
fn delays(events: &[Value]) -> Vec<u64> {
    let scheduled = all(events, "retry_scheduled").into_iter();
    scheduled.map(|event| event["delay_ms"].as_u64().unwrap()).collect()
}

fn breakers(world: &World) -> String {
    world.call(&["breaker", "ls", "--json"]).exits(0).out
}

#[test]
fn a_dead_origin_is_called_as_often_and_as_fast_as_the_policy_says() {
    for more in ["", "  breaker: false\n"] {
        let world = World::of(&eight_times(&dead_origin(), more));
        let report = world.run().exits(1).json();
        assert_eq!(report["reason"], "attempts");
        assert_eq!((&report["attempts"], &report["delay_ms"]), (&json!(8), &json!(140)));
        let events = world.events();
        is_lawful(&events);
        assert_eq!(delays(&events), [20; 7]);
        for word in ["held", "breaker_opened"] {
            assert!(all(&events, word).is_empty(), "{events:#?}");
        }
        assert_eq!(breakers(&world), "", "nobody asked for one");
    }
}

#[test]
fn the_items_of_a_map_and_of_a_flow_are_retried_each_for_itself() {
    let origin = dead_origin();
    let map = format!(
        "
mode: mapreduce
map:
  input: {{shell: seq 4}}
  max_parallel: 2
  agent_template:
    - http: {{url: '{origin}/${{item}}'}}
      retry_config: {{attempts: 3, backoff: fixed, initial_delay: 1ms}}
"
    );
    let flow = format!(
        "
mode: flow
goals: [a]
init: {{n: [1, 2, 3, 4]}}
steps:
  - id: a
    type: sync
    http: {{endpoint: '{origin}/a'}}
    attributes: {{n: {{role: required, for_each: true}}, x: {{role: output}}}}
    work_config: {{max_retries: 3, backoff: 1, backoff_type: fixed}}
"
    );
    for (text, code, attempts) in [(map, 4, 16), (flow, 1, 4)] {
        let world = World::of(&text);
        let report = world.run().exits(code).json();
        // The first dead item of a flow ends it; none is held before that.
        assert!(report["attempts"].as_u64().unwrap() >= attempts, "{report}");
        let events = world.events();
        is_lawful(&events);
        assert!(all(&events, "held").is_empty(), "{events:#?}");
        assert_eq!(breakers(&world), "");
    }
}

#[test]
fn breaker_true_holds_a_request_after_five_failures_of_its_origin() {
    let origin = dead_origin();
    let world = World::of(&eight_times(&origin, "  breaker: true\n"));
    let running = world.spawn(&["run", "w.yaml", "--json"]);
    world.wait_for_breaker(&origin, |breaker| breaker["state"] == "open");
    world.event("held");
    assert_eq!(all(&world.events(), "attempt_started").len(), 5);
    running.kill();
}

#[test]
fn a_breaker_without_a_name_is_named_after_workflow_and_command() {
    let commands = "
  - id: charge
    shell: 'false'
    breaker: {failure_threshold: 2, recovery_timeout: 10m, when_open: fail}
    retry_config: {attempts: 5, backoff: fixed, initial_delay: 1ms}
";
    let world = World::of(&format!("name: nightly run\ncommands:{commands}"));
    let report = world.run().exits(1).json();
    assert_eq!((&report["reason"], &report["attempts"]), (&json!("circuit_open"), &json!(2)));
    let breaker = world.breaker("nightly-run/charge");
    assert_eq!(breaker["state"], "open");
    // The next job of the workflow meets the same breaker.
    assert_eq!(world.run().exits(1).json()["attempts"], 0);
    world.call(&["breaker", "reset", "nightly-run/charge"]).exits(0);
    // The file names a workflow that has no name.
    world.write("hourly.yaml", &format!("commands:{commands}"));
    world.call(&["run", "hourly.yaml"]).exits(1);
    assert_eq!(world.breaker("hourly/charge")["state"], "open");
}

/// Stores a job as a release did that gave every origin a breaker.
fn stored_before(world: &World, text: &str) {
    let store = SqliteStore::open(world.store()).unwrap();
    let submitted = JobSubmitted {
        job: "before".to_owned(),
        text: text.into(),
        file: world.path("w.yaml").display().to_string(),
        working_dir: world.path("").display().to_string(),
        seed: 7,
        ..JobSubmitted::default()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Whoever had it is gone with the store.
    drop(journal::submit(&store, submitted, &Plans::default(), Timestamp::ZERO.after(now)).unwrap());
}

#[test]
fn a_job_that_was_stored_before_breakers_were_opt_in_has_them_after_resume_and_update() {
    let server = StepServer::start().on("/a", &[Reply::status(503)]);
    let origin = server.origin();
    let text = eight_times(&origin, "");
    for update in [&[][..], &["--update"]] {
        let world = World::of(&text);
        stored_before(&world, &text);
        // A file that asks for what the job has all along asks for nothing new.
        world.write("w.yaml", &eight_times(&origin, "  breaker: true\n"));
        let args = [&["resume", "before", "--json"], update].concat();
        let resumed = world.spawn(&args);
        world.wait_for_breaker(&origin, |breaker| breaker["state"] == "open");
        resumed.kill();
    }
    assert_eq!(server.requests("/a").len(), 10, "five each");
}

#[test]
fn an_update_of_a_job_keeps_its_breakers_as_they_were_when_it_was_submitted() {
    let server = StepServer::start().on("/a", &[Reply::status(503).gated()]);
    let world = World::of(&eight_times(&server.origin(), ""));
    let running = world.spawn(&["run", "w.yaml", "--json"]);
    server.wait_for("/a", 1);
    running.kill();
    world.write("w.yaml", &eight_times(&server.origin(), "  breaker: true\n"));
    let refused = world.call(&["resume", "@last", "--update"]).exits(3);
    assert!(refused.err.contains("call: breaker differs"), "{refused:#?}");
    server.answers("/a", &[Reply::status(200)]);
    world.write("other.yaml", &eight_times(&server.origin(), "").replace("attempts: 7", "attempts: 9"));
    world.call(&["resume", "@last", "--update", "other.yaml"]).exits(0);
    assert_eq!(breakers(&world), "");
}
