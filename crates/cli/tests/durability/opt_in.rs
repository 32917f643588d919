//! Breakers are opt-in: jobs without one, default names of breakers, and jobs that were stored when every
//! origin had a breaker.

use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use undaunted_engine::event::JobSubmitted;
use undaunted_engine::job::Plans;
use undaunted_policy::Timestamp;
use undaunted_runner::journal;
use undaunted_store::SqliteStore;

use crate::history::{assert_fields, count, delays, has_event};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;

fn dead_origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// A request with seven retries.
fn eight_times(origin: &str, more: &str) -> String {
    format!(
        "
- id: call
  http: {{url: '{origin}/a'}}
  retry_config: {{attempts: 7, backoff: fixed, initial_delay: 20ms}}
{more}"
    )
}

fn breakers(sandbox: &Sandbox) -> String {
    sandbox.stdout(&["breaker", "ls", "--json"])
}

#[test]
fn a_dead_origin_is_called_as_often_and_as_fast_as_the_policy_says() {
    for more in ["", "  breaker: false\n"] {
        let (sandbox, report) = Sandbox::run_workflow(&eight_times(&dead_origin(), more), 1);
        assert_fields!(report, {"reason": "attempts", "attempts": 8, "delay_ms": 140});
        let events = sandbox.lawful_events();
        assert_eq!(delays(&events), [20; 7]);
        for word in ["held", "breaker_opened"] {
            assert!(!has_event(&events, word), "{events:#?}");
        }
        assert_eq!(breakers(&sandbox), "", "no command asked for one");
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
        let sandbox = Sandbox::of(&text);
        let report = sandbox.run().exits(code).json();
        // The first dead letter of a flow ends it; no item is held before that.
        assert!(report["attempts"].as_u64().unwrap() >= attempts, "{report}");
        let events = sandbox.lawful_events();
        assert!(!has_event(&events, "held"), "{events:#?}");
        assert_eq!(breakers(&sandbox), "");
    }
}

#[test]
fn breaker_true_holds_a_request_after_five_failures_of_its_origin() {
    let origin = dead_origin();
    let sandbox = Sandbox::of(&eight_times(&origin, "  breaker: true\n"));
    let running = sandbox.start_run();
    sandbox.wait_for_open_breaker(&origin);
    sandbox.event("held");
    assert_eq!(count(&sandbox.events(), "attempt_started"), 5);
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
    let (sandbox, report) = Sandbox::run_workflow(&format!("name: nightly run\ncommands:{commands}"), 1);
    assert_fields!(report, {"reason": "circuit_open", "attempts": 2});
    let breaker = sandbox.breaker("nightly-run/charge");
    assert_eq!(breaker["state"], "open");
    // The next job of the workflow uses the same breaker.
    assert_eq!(sandbox.run().exits(1).json()["attempts"], 0);
    sandbox.reset_breaker("nightly-run/charge");
    // A workflow without a name is named after its file.
    sandbox.write("hourly.yaml", &format!("commands:{commands}"));
    sandbox.call(&["run", "hourly.yaml"]).exits(1);
    assert_eq!(sandbox.breaker("hourly/charge")["state"], "open");
}

/// Stores a job as releases did that gave every origin a breaker.
fn stored_before(sandbox: &Sandbox, text: &str) {
    let store = SqliteStore::open(sandbox.store()).unwrap();
    let submitted = JobSubmitted {
        job: "before".to_owned(),
        text: text.into(),
        file: sandbox.path("w.yaml").display().to_string(),
        working_dir: sandbox.path("").display().to_string(),
        seed: 7,
        ..JobSubmitted::default()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Dropping the store gives up the claim, as the end of a process does.
    drop(journal::submit(&store, submitted, &Plans::default(), Timestamp::ZERO.after(now)).unwrap());
}

#[test]
fn a_job_that_was_stored_before_breakers_were_opt_in_has_them_after_resume_and_update() {
    let server = ScriptedServer::start().on("/a", &[Reply::status(503)]);
    let origin = server.origin();
    let text = eight_times(&origin, "");
    for update in [&[][..], &["--update"]] {
        let sandbox = Sandbox::of(&text);
        stored_before(&sandbox, &text);
        // The file asks for a breaker that the job already has, so nothing differs.
        sandbox.write("w.yaml", &eight_times(&origin, "  breaker: true\n"));
        let args = [&["resume", "before", "--json"], update].concat();
        let resumed = sandbox.spawn(&args);
        sandbox.wait_for_open_breaker(&origin);
        resumed.kill();
    }
    assert_eq!(server.requests("/a").len(), 10, "five each");
}

#[test]
fn an_update_of_a_job_keeps_its_breakers_as_they_were_when_it_was_submitted() {
    let server = ScriptedServer::start().on("/a", &[Reply::status(503).gated()]);
    let sandbox = Sandbox::of(&eight_times(&server.origin(), ""));
    let running = sandbox.start_run();
    server.wait_for("/a", 1);
    running.kill();
    sandbox.write("w.yaml", &eight_times(&server.origin(), "  breaker: true\n"));
    sandbox.call(&["resume", "@last", "--update"]).exits(3).err_contains("call: breaker differs");
    server.answers("/a", &[Reply::status(200)]);
    sandbox.write("other.yaml", &eight_times(&server.origin(), "").replace("attempts: 7", "attempts: 9"));
    sandbox.call(&["resume", "@last", "--update", "other.yaml"]).exits(0);
    assert_eq!(breakers(&sandbox), "");
}
