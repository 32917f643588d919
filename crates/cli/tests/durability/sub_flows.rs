//! Steps that run a sub-flow.

use serde_json::{Value, json};

use crate::history::{all, assert_contains, count, one, text};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;

/// A flow whose goal sums the results of a sub-flow for each element.
fn sandbox(server: &ScriptedServer, work: &str) -> Sandbox {
    Sandbox::of(&format!(
        "
mode: flow
goals: [sum]
init: {{numbers: [1, 2, 3]}}
steps:
  - id: sum
    type: sync
    http: {{endpoint: '{sum}'}}
    attributes:
      squares: {{role: required}}
      total: {{role: output}}
  - id: each
    type: flow
    flow: {{goals: [square]}}
    work_config: {{parallelism: 3{work}}}
    attributes:
      numbers: {{role: required, for_each: true, mapping: {{name: number}}}}
      squares: {{role: output, mapping: {{name: square}}}}
  - id: square
    type: sync
    http: {{endpoint: '{square}'}}
    work_config: {{max_retries: 2, backoff: 1}}
    attributes:
      doubled: {{role: required}}
      square: {{role: output}}
  - id: double
    type: sync
    http: {{endpoint: '{double}'}}
    attributes:
      number: {{role: required}}
      doubled: {{role: output}}
",
        sum = server.url("/sum"),
        square = server.url("/square"),
        double = server.url("/double"),
    ))
}

fn number(request: &Value, name: &str) -> u64 {
    request["arguments"][name].as_u64().unwrap()
}

fn server() -> ScriptedServer {
    ScriptedServer::start()
        .by("/double", |request| Reply::outputs(&json!({"doubled": 2 * number(&request.json(), "number")})))
        .by("/sum", |request| {
            let squares = request.argument("squares");
            let squares = squares.as_array().unwrap().iter();
            let sum: u64 = squares.map(|each| each["square"].as_u64().unwrap()).sum();
            Reply::outputs(&json!({"total": sum}))
        })
}

/// The sub-flows in the store.
fn children(sandbox: &Sandbox) -> Vec<String> {
    sandbox.jobs().into_iter().filter(|id| id.contains(':')).collect()
}

#[test]
fn a_step_that_is_a_flow_is_run_for_each_of_its_items() {
    let server = server().by("/square", |request| {
        let doubled = number(&request.json(), "doubled");
        Reply::outputs(&json!({"square": doubled * doubled}))
    });
    let sandbox = sandbox(&server, "");
    sandbox.call(&["check", "w.yaml"]).exits(0);
    let report = sandbox.run().exits(0).json();
    let sent = server.requests("/sum")[0].json();
    assert_eq!(
        sent["arguments"]["squares"],
        json!([
            {"number": 1, "square": 4}, {"number": 2, "square": 16}, {"number": 3, "square": 36}
        ])
    );
    let children = children(&sandbox);
    assert_eq!(children.len(), 3, "{children:?}");
    for call in server.requests("/square") {
        let metadata = call.json()["metadata"].clone();
        assert_eq!(metadata["parent_flow_id"], report["job"]);
        assert_eq!(metadata["parent_step_id"], "each");
        let token = text(&metadata["parent_work_item_token"]);
        let flow = format!("{}:each:{token}", text(&report["job"]));
        assert_eq!(metadata["flow_id"], flow.as_str());
        assert!(children.contains(&flow), "{flow}");
    }
    sandbox.lawful_events();
}

#[test]
fn a_flow_that_fails_fails_its_item_for_good_and_says_why() {
    let server = server().on("/square", &[Reply::refusal("no roots today")]);
    let sandbox = sandbox(&server, ", max_retries: 5, backoff: 1");
    let report = sandbox.run().exits(1).json();
    let error = text(&report["error"]);
    assert!(error.contains("no roots today"), "{error}");
    assert!(error.contains(":each:"), "{error}");
    assert!(server.requests("/sum").is_empty());
    let events = sandbox.events();
    let failed = all(&events, "attempt_failed");
    assert!(failed.iter().all(|failed| failed["attempt"] == 1));
}

#[test]
fn a_flow_that_ran_at_a_kill_is_resumed_and_not_started_again() {
    let server = server().on("/square", &[Reply::outputs(&json!({"square": 1})).gated()]);
    let sandbox = sandbox(&server, "");
    let engine = sandbox.start_run();
    server.wait_for("/square", 3);
    engine.kill();
    let before = children(&sandbox);
    assert_eq!(before.len(), 3);
    server.open("/square");
    server.answers("/square", &[Reply::outputs(&json!({"square": 5}))]);
    sandbox.call(&["resume", outer_flow(&sandbox).as_str(), "--json"]).exits(0);
    assert_eq!(children(&sandbox), before);
    let sent = server.requests("/sum")[0].json();
    let squares = sent["arguments"]["squares"].as_array().unwrap().clone();
    assert!(squares.iter().all(|each| each["square"] == 5), "{squares:?}");
    // Interrupted calls are sent again with the same token, and no other call is.
    assert_eq!(server.requests("/double").len(), 3);
    let mut tokens: Vec<String> =
        server.requests("/square").iter().map(|request| request.token().to_owned()).collect();
    assert_eq!(tokens.len(), 6);
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
    let events = sandbox.events_of(&outer_flow(&sandbox));
    // The items of the outer flow were not started again.
    assert_eq!(count(&events, "attempt_started"), 4);
}

/// The outermost flow.
fn outer_flow(sandbox: &Sandbox) -> String {
    sandbox.jobs().into_iter().find(|id| !id.contains(':')).unwrap()
}

#[test]
fn a_cancelled_flow_cancels_the_sub_flows_it_waits_for() {
    let server = server().on("/square", &[Reply::StallInHeaders]);
    let sandbox = sandbox(&server, "");
    let engine = sandbox.start_run();
    server.wait_for("/square", 3);
    sandbox.call(&["cancel", &outer_flow(&sandbox)]).exits(0);
    assert_eq!(engine.wait().exits(1).json()["status"], "cancelled");
    for child in children(&sandbox) {
        let child_state = sandbox.json(&["show", &child, "--json"]);
        assert_eq!(child_state["status"], "cancelled", "{child}");
    }
}

#[test]
fn a_suspended_flow_is_resumed_with_the_sub_flows_it_waited_for() {
    let server = server().on("/square", &[Reply::status(503), Reply::status(503), Reply::status(503)]);
    let (sandbox, engine) = Sandbox::start_workflow(
        &std::fs::read_to_string(sandbox(&server, "").path("w.yaml"))
            .unwrap()
            .replace("backoff: 1}", "backoff: 3000}"),
    );
    server.wait_for("/square", 3);
    engine.suspend();
    for child in children(&sandbox) {
        let child_state = sandbox.json(&["show", &child, "--json"]);
        assert_eq!(child_state["status"], "suspended", "{child}");
    }
    server.answers("/square", &[Reply::outputs(&json!({"square": 7}))]);
    let resumed = sandbox.call(&["resume", &outer_flow(&sandbox), "--json"]).exits(0);
    assert_eq!(resumed.json()["status"], "completed");
    let sent = server.requests("/sum")[0].json();
    assert_eq!(sent["arguments"]["squares"][0]["square"], 7);
}

#[test]
fn flows_that_contain_each_other_fail_at_a_depth_limit() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
mode: flow
goals: [a]
steps:
  - {id: a, type: flow, flow: {goals: [b]}}
  - {id: b, type: flow, flow: {goals: [a]}}
",
        1,
    );
    assert_contains(&report["error"], "nested too deeply");
    assert_eq!(children(&sandbox).len(), 16);
    let events = sandbox.events_of(&outer_flow(&sandbox));
    one(&events, "attempt_started");
}

/// Sub-flows nested `depth` levels deep around a step that makes a call.
fn nested(server: &ScriptedServer, depth: usize) -> Sandbox {
    let steps: Vec<String> = (0..depth)
        .map(|n| {
            let next = n + 1;
            format!("  - {{id: level-{n}, type: flow, flow: {{goals: [level-{next}]}}}}\n")
        })
        .collect();
    let steps = steps.concat();
    let endpoint = server.url("/leaf");
    Sandbox::of(&format!(
        "mode: flow\ngoals: [level-0]\nsteps:\n{steps}  - {{id: level-{depth}, type: sync, http: {{endpoint: '{endpoint}'}}}}\n"
    ))
}

fn leaf() -> ScriptedServer {
    ScriptedServer::start().on("/leaf", &[Reply::done()])
}

#[test]
fn flows_deep_inside_each_other_have_names_that_files_can_have() {
    let server = leaf();
    let sandbox = nested(&server, 8);
    sandbox.run().exits(0);
    let parts = children(&sandbox);
    assert_eq!(parts.len(), 8, "{parts:#?}");
    for part in &parts {
        assert!(part.len() <= 220, "{part}");
        let events = sandbox.events_of(part);
        sandbox.call(&["archive", part]).exits(0);
        let file = format!("archive/{part}.undaunted.jsonl");
        let file = sandbox.store().join(file);
        sandbox.call(&["restore", file.to_str().unwrap()]).exits(0);
        assert_eq!(sandbox.events_of(part), events);
        std::fs::remove_file(file).unwrap();
    }
    // A flow whose archive file exists is reported and does not keep others from being archived.
    let stuck = &parts[3];
    let taken = sandbox.store().join(format!("archive/{stuck}.undaunted.jsonl"));
    std::fs::write(&taken, "something else").unwrap();
    sandbox.call(&["archive", "--older-than", "0s"]).exits(2).err_contains(stuck.as_str());
    assert_eq!(children(&sandbox), std::slice::from_ref(stuck));
    std::fs::remove_file(&taken).unwrap();
    sandbox.call(&["archive", "--older-than", "0s"]).exits(0);
    assert_eq!(sandbox.stdout(&["ls", "--json"]), "");
    let archived = std::fs::read_dir(sandbox.store().join("archive")).unwrap();
    assert_eq!(archived.count(), 9);
}

#[test]
fn a_prefix_names_the_flow_before_its_sub_flows_which_are_removed_with_it() {
    let server = server().on("/square", &[Reply::outputs(&json!({"square": 4}))]);
    let sandbox = sandbox(&server, "");
    let job = text(&sandbox.run().exits(0).json()["job"]);
    assert_eq!(children(&sandbox).len(), 3);
    for named in ["@last", &job, &job[..5]] {
        let child_state = sandbox.json(&["show", named, "--json"]);
        assert_eq!(child_state["job"], job.as_str(), "{named}");
    }
    // A sub-flow can be named explicitly.
    let part = children(&sandbox).remove(0);
    let child_state = sandbox.json(&["show", &part, "--json"]);
    assert_eq!(child_state["job"], part.as_str());
    sandbox.call(&["rm", &job[..5], "--yes"]).exits(0);
    assert_eq!(sandbox.stdout(&["ls", "--json"]), "");
}

#[test]
fn nested_sub_flows_are_removed_with_their_flow() {
    let server = leaf();
    let sandbox = nested(&server, 4);
    sandbox.run().exits(0);
    assert_eq!(children(&sandbox).len(), 4);
    sandbox.call(&["rm", "@last", "--yes"]).exits(0);
    assert_eq!(sandbox.stdout(&["ls", "--json"]), "");
}
