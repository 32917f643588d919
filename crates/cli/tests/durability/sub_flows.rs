//! Steps that are flows of their own.

use serde_json::{Value, json};

use crate::history::{all, is_lawful, one, text};
use crate::http_server::{Reply, StepServer};
use crate::world::World;

/// A flow whose goal sums what a flow of its own gives for each element.
fn world(server: &StepServer, work: &str) -> World {
    World::of(&format!(
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

fn server() -> StepServer {
    StepServer::start()
        .by("/double", |request| Reply::outputs(&json!({"doubled": 2 * number(&request.json(), "number")})))
        .by("/sum", |request| {
            let squares = request.json()["arguments"]["squares"].clone();
            let squares = squares.as_array().unwrap().iter();
            let sum: u64 = squares.map(|each| each["square"].as_u64().unwrap()).sum();
            Reply::outputs(&json!({"total": sum}))
        })
}

/// The flows that items of the first one wait for.
fn children(world: &World) -> Vec<String> {
    let listed = world.call(&["ls", "--json"]).exits(0);
    let listed = listed.out.lines().map(|line| {
        let job: Value = serde_json::from_str(line).unwrap();
        text(&job["job"]).clone()
    });
    listed.filter(|id| id.contains(':')).collect()
}

#[test]
fn a_step_that_is_a_flow_is_run_for_each_of_its_items() {
    let server = server().by("/square", |request| {
        let doubled = number(&request.json(), "doubled");
        Reply::outputs(&json!({"square": doubled * doubled}))
    });
    let world = world(&server, "");
    world.call(&["check", "w.yaml"]).exits(0);
    let report = world.run().exits(0).json();
    let sent = server.requests("/sum")[0].json();
    assert_eq!(
        sent["arguments"]["squares"],
        json!([
            {"number": 1, "square": 4}, {"number": 2, "square": 16}, {"number": 3, "square": 36}
        ])
    );
    let children = children(&world);
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
    is_lawful(&world.events());
}

#[test]
fn a_flow_that_fails_fails_its_item_for_good_and_says_why() {
    let server = server().on("/square", &[Reply::refusal("no roots today")]);
    let world = world(&server, ", max_retries: 5, backoff: 1");
    let report = world.run().exits(1).json();
    let error = text(&report["error"]);
    assert!(error.contains("no roots today"), "{error}");
    assert!(error.contains(":each:"), "{error}");
    assert!(server.requests("/sum").is_empty());
    let events = world.events();
    let failed = all(&events, "attempt_failed");
    assert!(failed.iter().all(|failed| failed["attempt"] == 1));
}

#[test]
fn a_flow_that_was_under_way_at_a_kill_is_gone_on_with_and_not_begun_again() {
    let server = server().on("/square", &[Reply::outputs(&json!({"square": 1})).gated()]);
    let world = world(&server, "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    server.wait_for("/square", 3);
    engine.kill();
    let before = children(&world);
    assert_eq!(before.len(), 3);
    server.open("/square");
    server.answers("/square", &[Reply::outputs(&json!({"square": 5}))]);
    world.call(&["resume", one_job(&world).as_str(), "--json"]).exits(0);
    assert_eq!(children(&world), before);
    let sent = server.requests("/sum")[0].json();
    let squares = sent["arguments"]["squares"].as_array().unwrap().clone();
    assert!(squares.iter().all(|each| each["square"] == 5), "{squares:?}");
    // What was being asked for is asked for again with the same token, and nothing else is.
    assert_eq!(server.requests("/double").len(), 3);
    let mut tokens: Vec<String> =
        server.requests("/square").iter().map(|request| request.token().to_owned()).collect();
    assert_eq!(tokens.len(), 6);
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
    let events = world.call(&["events", one_job(&world).as_str(), "--json"]);
    let events: Vec<Value> = events.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The items of the outer flow went on waiting.
    assert_eq!(all(&events, "attempt_started").len(), 4);
}

/// The job that is no flow of another.
fn one_job(world: &World) -> String {
    let listed = world.call(&["ls", "--json"]).exits(0);
    let mut listed = listed.out.lines().map(|line| {
        let job: Value = serde_json::from_str(line).unwrap();
        text(&job["job"]).clone()
    });
    listed.find(|id| !id.contains(':')).unwrap()
}

#[test]
fn who_is_cancelled_cancels_what_it_waits_for() {
    let server = server().on("/square", &[Reply::StallInHeaders]);
    let world = world(&server, "");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    server.wait_for("/square", 3);
    world.call(&["cancel", &one_job(&world)]).exits(0);
    assert_eq!(engine.wait().exits(1).json()["status"], "cancelled");
    for child in children(&world) {
        let shown = world.call(&["show", &child, "--json"]).exits(0).json();
        assert_eq!(shown["status"], "cancelled", "{child}");
    }
}

#[test]
fn who_is_suspended_goes_on_with_what_it_waited_for() {
    let server = server().on("/square", &[Reply::status(503), Reply::status(503), Reply::status(503)]);
    let world = World::of(
        &std::fs::read_to_string(world(&server, "").path("w.yaml"))
            .unwrap()
            .replace("backoff: 1}", "backoff: 3000}"),
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    server.wait_for("/square", 3);
    engine.signal("INT");
    engine.wait().exits(75);
    for child in children(&world) {
        let shown = world.call(&["show", &child, "--json"]).exits(0).json();
        assert_eq!(shown["status"], "suspended", "{child}");
    }
    server.answers("/square", &[Reply::outputs(&json!({"square": 7}))]);
    let resumed = world.call(&["resume", &one_job(&world), "--json"]).exits(0);
    assert_eq!(resumed.json()["status"], "completed");
    let sent = server.requests("/sum")[0].json();
    assert_eq!(sent["arguments"]["squares"][0]["square"], 7);
}

#[test]
fn flows_that_stand_for_each_other_come_to_an_end() {
    let world = World::of(
        "
mode: flow
goals: [a]
steps:
  - {id: a, type: flow, flow: {goals: [b]}}
  - {id: b, type: flow, flow: {goals: [a]}}
",
    );
    let report = world.run().exits(1).json();
    let error = text(&report["error"]);
    assert!(error.contains("inside each other"), "{error}");
    assert_eq!(children(&world).len(), 16);
    let events = world.call(&["events", &one_job(&world), "--json"]).exits(0);
    let events: Vec<Value> = events.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    one(&events, "attempt_started");
}

/// Flows in flows, so many around the one that calls somebody.
fn nested(server: &StepServer, deep: usize) -> World {
    let steps: Vec<String> = (0..deep)
        .map(|n| {
            let next = n + 1;
            format!("  - {{id: level-{n}, type: flow, flow: {{goals: [level-{next}]}}}}\n")
        })
        .collect();
    let steps = steps.concat();
    let endpoint = server.url("/leaf");
    World::of(&format!(
        "mode: flow\ngoals: [level-0]\nsteps:\n{steps}  - {{id: level-{deep}, type: sync, http: {{endpoint: '{endpoint}'}}}}\n"
    ))
}

fn leaf() -> StepServer {
    StepServer::start().on("/leaf", &[Reply::outputs(&json!({}))])
}

#[test]
fn flows_deep_inside_each_other_have_names_that_files_can_have() {
    let server = leaf();
    let world = nested(&server, 8);
    world.run().exits(0);
    let parts = children(&world);
    assert_eq!(parts.len(), 8, "{parts:#?}");
    for part in &parts {
        assert!(part.len() <= 220, "{part}");
        let events = world.events_of(part);
        world.call(&["archive", part]).exits(0);
        let file = format!("archive/{part}.undaunted.jsonl");
        let file = world.store().join(file);
        world.call(&["restore", file.to_str().unwrap()]).exits(0);
        assert_eq!(world.events_of(part), events);
        std::fs::remove_file(file).unwrap();
    }
    // One whose place is taken keeps nobody from being archived, and is not passed over in silence.
    let stuck = &parts[3];
    let taken = world.store().join(format!("archive/{stuck}.undaunted.jsonl"));
    std::fs::write(&taken, "something else").unwrap();
    let ended = world.call(&["archive", "--older-than", "0s"]).exits(2);
    assert!(ended.err.contains(stuck.as_str()), "{}", ended.err);
    assert_eq!(children(&world), std::slice::from_ref(stuck));
    std::fs::remove_file(&taken).unwrap();
    world.call(&["archive", "--older-than", "0s"]).exits(0);
    assert_eq!(world.call(&["ls", "--json"]).exits(0).out, "");
    let archived = std::fs::read_dir(world.store().join("archive")).unwrap();
    assert_eq!(archived.count(), 9);
}

#[test]
fn a_flow_is_found_before_its_parts_and_they_go_with_it() {
    let server = server().on("/square", &[Reply::outputs(&json!({"square": 4}))]);
    let world = world(&server, "");
    let job = text(&world.run().exits(0).json()["job"]);
    assert_eq!(children(&world).len(), 3);
    for named in ["@last", &job, &job[..5]] {
        let shown = world.call(&["show", named, "--json"]).exits(0).json();
        assert_eq!(shown["job"], job.as_str(), "{named}");
    }
    // A part is meant by whoever says so.
    let part = children(&world).remove(0);
    let shown = world.call(&["show", &part, "--json"]).exits(0).json();
    assert_eq!(shown["job"], part.as_str());
    world.call(&["rm", &job[..5]]).exits(0);
    assert_eq!(world.call(&["ls", "--json"]).exits(0).out, "");
}

#[test]
fn parts_of_parts_go_with_a_flow_too() {
    let server = leaf();
    let world = nested(&server, 4);
    world.run().exits(0);
    assert_eq!(children(&world).len(), 4);
    world.call(&["rm", "@last"]).exits(0);
    assert_eq!(world.call(&["ls", "--json"]).exits(0).out, "");
}
