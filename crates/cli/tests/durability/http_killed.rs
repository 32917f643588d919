//! HTTP requests in flight during a kill, a cancellation or Ctrl-C; and requests everywhere in a workflow.

use serde_json::json;

use crate::history::{assert_fields, has_event, one, outcomes};
use crate::http::{assert_one_request_per_attempt, one_request, retried_request};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;

fn gated() -> ScriptedServer {
    ScriptedServer::start().on("/", &[Reply::status(200).gated()])
}

#[test]
fn a_request_in_flight_at_a_crash_is_interrupted_and_sent_again_with_the_same_token() {
    let server = gated();
    let sandbox = one_request(&format!("method: POST, url: '{}'", server.url("/")), "");
    let engine = sandbox.start_run();
    server.wait_for("/", 1);
    engine.kill();
    server.open("/");
    let report = sandbox.resume().exits(0).json();
    assert_fields!(report, {"attempts": 2, "retries": 1});
    let events = sandbox.lawful_events();
    assert_one_request_per_attempt(&server, &events);
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
    let sent = server.all();
    assert_eq!(sent[0].token(), sent[1].token());
}

#[test]
fn kills_in_requests_never_pass_the_bound() {
    let server = gated();
    let sandbox = one_request(&format!("method: POST, url: '{}'", server.url("/")), "");
    let mut engine = sandbox.start_run();
    for number in 1..=3 {
        server.wait_for("/", number);
        engine.kill();
        engine = sandbox.start_resume();
    }
    let report = engine.wait().exits(1).json();
    assert_fields!(report, {"reason": "attempts", "attempts": 3});
    assert_one_request_per_attempt(&server, &sandbox.events());
    server.open("/");
}

#[test]
fn a_request_marked_as_not_repeatable_is_not_sent_again_after_a_crash() {
    let server = gated();
    let http = format!("method: POST, url: '{}'", server.url("/"));
    let sandbox = one_request(&http, "  on_interrupt: stop\n");
    let engine = sandbox.start_run();
    server.wait_for("/", 1);
    engine.kill();
    server.open("/");
    let report = sandbox.resume().exits(1).json();
    assert_eq!(report["reason"], "interrupted");
    assert_eq!(server.all().len(), 1);
}

#[test]
fn a_wait_for_the_next_request_survives_a_crash() {
    let server = ScriptedServer::start().on("/", &[Reply::status(503), Reply::status(200)]);
    let sandbox = retried_request(&server, "attempts: 1, initial_delay: 1s");
    let due = sandbox.run_killed_at("retry_scheduled")["due_at"].clone();
    sandbox.resume().exits(0);
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "retry_scheduled")["due_at"], due);
    let sent = server.all();
    assert_eq!((sent.len(), sent[0].token()), (2, sent[1].token()));
}

#[test]
fn cancelling_ends_a_request_that_waits_for_its_answer() {
    let server = gated();
    let sandbox = one_request(&format!("url: '{}'", server.url("/")), "");
    let engine = sandbox.start_run();
    server.wait_for("/", 1);
    sandbox.call(&["cancel", "@last"]).exits(0);
    let report = engine.wait().exits(1).json();
    assert_eq!(report["status"], "cancelled");
    sandbox.lawful_events();
    assert_eq!(server.all().len(), 1);
    server.open("/");
}

#[test]
fn one_ctrl_c_lets_a_request_finish() {
    let server = gated();
    let sandbox = Sandbox::of(&format!(
        "- {{id: call, http: {{url: '{}'}}}}\n- shell: echo next >> log\n",
        server.url("/")
    ));
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    server.wait_for("/", 1);
    engine.interrupt();
    server.open("/");
    engine.wait().exits(75);
    assert_eq!(outcomes(&sandbox.events()), ["success"]);
    sandbox.resume().exits(0);
    assert_eq!(server.all().len(), 1);
    assert_eq!(sandbox.lines("log"), ["next"]);
}

#[test]
fn a_second_ctrl_c_ends_a_request_and_it_is_sent_again_on_resume() {
    let server = gated();
    let sandbox = one_request(&format!("url: '{}'", server.url("/")), "");
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    server.wait_for("/", 1);
    engine.interrupt();
    engine.signal("INT");
    engine.wait().exits(130);
    assert_eq!(outcomes(&sandbox.events()), ["interrupted"]);
    server.open("/");
    sandbox.resume().exits(0);
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
    assert_eq!(server.all()[0].token(), server.all()[1].token());
}

#[test]
fn the_breaker_of_an_origin_is_shared_by_jobs_and_needs_no_name() {
    let server = ScriptedServer::start().on("/a", &[Reply::status(503)]).on("/b", &[Reply::status(200)]);
    let sandbox = Sandbox::new();
    let workflow = |path: &str| {
        format!(
            "
- id: call
  http: {{url: '{}'}}
  breaker: {{failure_threshold: 3, recovery_timeout: 10m}}
  retry_config: {{attempts: 20, backoff: fixed, initial_delay: 1ms}}
",
            server.url(path)
        )
    };
    sandbox.write("a.yaml", &workflow("/a"));
    sandbox.write("b.yaml", &workflow("/b"));
    let first = sandbox.spawn(&["run", "a.yaml", "--json"]);
    let origin = server.origin();
    sandbox.wait_for_open_breaker(&origin);
    let known = sandbox.jobs();
    let second = sandbox.spawn(&["run", "b.yaml", "--json"]);
    Sandbox::eventually("a held item", || {
        let other = sandbox.jobs().into_iter().find(|job| !known.contains(job))?;
        let events = sandbox.events_of(&other);
        (has_event(&events, "held")).then_some(())
    });
    assert_eq!(server.requests("/a").len(), 3);
    assert!(server.requests("/b").is_empty());
    server.answers("/a", &[Reply::status(200)]);
    sandbox.reset_breaker(&origin);
    first.wait().exits(0);
    second.wait().exits(0);
    assert_eq!((server.requests("/a").len(), server.requests("/b").len()), (4, 1));
}

#[test]
fn an_answer_below_500_shows_that_an_origin_is_there_and_another_origin_is_another() {
    let server = ScriptedServer::start();
    let other = ScriptedServer::start().on("/down", &[Reply::status(503)]);
    for (path, status) in [("/a", 503), ("/b", 404), ("/c", 503), ("/d", 400), ("/e", 503)] {
        server.answers(path, &[Reply::status(status)]);
    }
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: urls.json
  max_parallel: 1
  agent_template:
    - id: call
      http: {url: '${item}'}
      breaker: {failure_threshold: 2, when_open: fail}
",
    );
    let mut urls: Vec<String> = ["/a", "/b", "/c", "/d", "/e"].map(|path| server.url(path)).into();
    urls.insert(1, other.url("/down"));
    sandbox.write("urls.json", &json!(urls).to_string());
    sandbox.run().exits(4);
    assert_eq!(server.all().len(), 5, "never open");
    assert!(!has_event(&sandbox.events(), "breaker_opened"));
}

#[test]
fn requests_are_made_in_setup_map_reduce_and_handlers() {
    let server = ScriptedServer::start()
        .on("/setup", &[Reply::text(200, "base\n")])
        .on("/map/1", &[Reply::text(200, "one")])
        .on("/map/2", &[Reply::status(410)])
        .on("/mend", &[Reply::status(500), Reply::status(200)])
        .on("/reduce", &[Reply::status(200)]);
    let (sandbox, report) = Sandbox::run_workflow(
        &format!(
            "
mode: mapreduce
setup:
  - {{id: first, http: {{url: '{0}/setup'}}, capture_output: base}}
map:
  input: {{shell: 'seq 1 2'}}
  agent_template:
    - id: call
      http: {{url: '{0}/map/${{item}}', headers: {{X-Base: '${{base}}'}}}}
      on_failure:
        http: {{method: POST, url: '{0}/mend'}}
        retry_config: {{attempts: 1, initial_delay: 1ms}}
reduce:
  - {{id: last, http: {{method: POST, url: '{0}/reduce', body: {{all: '${{map.results}}'}}}}}}
",
            server.origin()
        ),
        0,
    );
    assert_eq!(report["items"]["succeeded"], 2);
    for item in ["/map/1", "/map/2"] {
        assert_eq!(server.requests(item)[0].header("x-base"), Some("base"));
    }
    let mended = server.requests("/mend");
    assert_eq!((mended.len(), mended[0].token()), (2, mended[1].token()));
    let failed = &server.requests("/map/2")[0];
    assert_ne!(mended[0].token(), failed.token());
    let reduced = &server.requests("/reduce")[0].json()["all"];
    let outputs: Vec<_> = reduced.as_array().unwrap().iter().map(|each| &each["output"]).collect();
    assert_eq!(outputs[0], "one", "{reduced}");
    sandbox.lawful_events();
}

#[test]
fn requests_of_items_run_in_parallel_up_to_max_parallel() {
    let server = ScriptedServer::start().on("/x", &[Reply::status(200).gated()]);
    let (_sandbox, engine) = Sandbox::start_workflow(&format!(
        "
mode: mapreduce
map:
  input: {{shell: 'seq 1 12'}}
  max_parallel: 4
  agent_template: [{{id: call, http: {{url: '{}'}}}}]
",
        server.url("/x")
    ));
    server.wait_for("/x", 4);
    server.open("/x");
    engine.wait().exits(0);
    assert_eq!((server.all().len(), server.busiest()), (12, 4));
}

#[test]
fn a_completion_rule_that_is_met_ends_the_requests_that_still_run() {
    let server = ScriptedServer::start()
        .on("/1", &[Reply::status(200)])
        .on("/2", &[Reply::status(200).gated()])
        .on("/3", &[Reply::status(200).gated()]);
    let (sandbox, engine) = Sandbox::start_workflow(&format!(
        "
mode: mapreduce
map:
  input: {{shell: 'seq 3 -1 1'}}
  max_parallel: 2
  best_effort: true
  best_effort_min_dcs: 1
  agent_template: [{{id: call, http: {{url: '{}/${{item}}'}}}}]
",
        server.origin()
    ));
    server.wait_for("/2", 1);
    server.open("/2");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["items"]["succeeded"], 1);
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "completion_reached")["reason"], "min_dcs_reached (1/1)");
    assert_eq!(server.requests("/3").len(), 1);
    server.open("/3");
}

#[test]
fn a_request_has_no_more_time_than_its_item_and_its_job() {
    let server = gated();
    let job = Sandbox::of(&format!(
        "deadline: 2s\ncommands:\n  - {{id: call, http: {{url: '{}'}}, retry_config: {{attempts: 3}}}}\n",
        server.url("/")
    ));
    let report = job.run().exits(1).json();
    assert_eq!(report["reason"], "deadline", "{report}");
    job.lawful_events();
    let item = Sandbox::of(&format!(
        "
mode: mapreduce
map:
  input: {{shell: echo 1}}
  agent_timeout_secs: 1
  agent_template: [{{id: call, http: {{url: '{}'}}, retry_config: {{attempts: 3}}}}]
",
        server.url("/")
    ));
    let report = item.run().exits(4).json();
    assert_eq!(report["reason"], "deadline", "{report}");
    assert_eq!(server.all().len(), 2);
    server.open("/");
}

#[test]
fn a_probe_of_an_origin_that_was_under_way_at_a_kill_does_not_keep_its_breaker_half_open() {
    let server = ScriptedServer::start().on("/", &[Reply::status(503), Reply::status(200).gated()]);
    let breaker = "  breaker: {failure_threshold: 1, recovery_timeout: 100ms, half_open_max_calls: 1}\n";
    let retry = "  retry_config: {attempts: 5, backoff: fixed, initial_delay: 1ms}\n";
    let url = server.url("/");
    let (sandbox, engine) = Sandbox::start_workflow(&format!("- http: {{url: '{url}'}}\n{breaker}{retry}"));
    server.wait_for("/", 2);
    assert_eq!(sandbox.breaker(&server.origin())["state"], "half_open");
    engine.kill();
    server.open("/");
    sandbox.resume().exits(0);
    assert_eq!(outcomes(&sandbox.events()), ["status", "interrupted", "success"]);
    assert_eq!(sandbox.breaker(&server.origin())["state"], "closed");
}

#[test]
fn the_file_that_holds_an_item_is_there_for_a_request_that_names_it() {
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    let (_sandbox, _) = Sandbox::run_workflow(
        &format!(
            "
mode: mapreduce
map:
  input: {{shell: seq 1 1}}
  agent_template:
    - http: {{method: POST, url: '{}', body: '${{item_file}}'}}
",
            server.url("/")
        ),
        0,
    );
    let path = server.all()[0].text().to_owned();
    assert!(std::path::Path::new(&path).is_file(), "{path}");
}
