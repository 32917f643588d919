//! The command line beside a running server: the same flows, the same store.

use serde_json::{Value, json};

use crate::history::{all, kind, outcomes, text};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, only};
use crate::world::World;

#[test]
fn flows_of_a_running_server_are_shown_explained_and_listed() {
    let world = World::new();
    let handlers =
        StepServer::start().on("/a", &[Reply::status(503), Reply::outputs(&json!({"x": 1})).gated()]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 3, "backoff": 1})));
    served.begin("f", "a", &json!({}));
    handlers.wait_for("/a", 2);
    let shown = world.call(&["show", "f", "--json"]).exits(0).json();
    assert_eq!(shown["job"], "f");
    let listed = world.call(&["ls", "--json"]).exits(0).json();
    assert_eq!(listed["job"], "f");
    let explained = world.call(&["explain", "f/#0"]).exits(0).out;
    assert!(explained.contains("503"), "{explained}");
    let follow = world.spawn(&["events", "f", "--json", "--follow"]);
    handlers.open("/a");
    served.ends("f", "completed");
    let followed = follow.wait().exits(0);
    let events: Vec<Value> = followed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events, world.events_of("f"));
    // Somebody else's job: `resume` of one that has ended changes nothing.
    world.call(&["resume", "f", "--json"]).exits(0);
    assert_eq!(events, world.events_of("f"));
}

#[test]
fn a_flow_is_cancelled_paused_and_gone_on_with_from_the_command_line() {
    let world = World::new();
    let handlers = StepServer::start()
        .on("/a", &[Reply::outputs(&json!({"x": 1})).gated()])
        .on("/wait", &[Reply::status(503), Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 1, "backoff": 1})));
    served.register(&giver(
        &handlers,
        "wait",
        &json!({"max_retries": 2, "backoff": 3000, "backoff_type": "fixed"}),
    ));
    served.begin("f", "a", &json!({}));
    handlers.wait_for("/a", 1);
    // Somebody runs it: it cannot be resumed, or removed, by another.
    world.call(&["resume", "f"]).exits(7);
    world.call(&["rm", "f", "--force", "--yes"]).exits(7);
    world.call(&["archive", "f"]);
    world.call(&["cancel", "f"]).exits(0);
    let flow = served.ends("f", "failed");
    assert_eq!(kind(world.events_of("f").last().unwrap()), "job_cancelled");
    assert!(!text(&flow["error"]).is_empty(), "{flow:#}");
    served.deactivated("f");

    served.begin("g", "wait", &json!({}));
    served.item("g", "wait", |item| item["retry_count"] == 1);
    world.call(&["pause", "g"]).exits(0);
    World::eventually("a flow that is paused", || {
        (!all(&world.events_of("g"), "job_paused").is_empty()).then_some(())
    });
    assert_eq!(served.flow("g")["status"], "active");
    world.call(&["unpause", "g"]).exits(0);
    served.ends("g", "completed");
    assert_eq!(handlers.requests("/wait").len(), 2);
}

#[test]
fn a_failed_flow_is_redriven_while_the_server_runs_and_the_api_shows_it() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::status(400), Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 1, "backoff": 1})));
    served.begin("f", "a", &json!({}));
    let failed = served.ends("f", "failed");
    served.deactivated("f");
    let letters = world.call(&["dlq", "ls", "f", "--json"]).exits(0).json();
    assert_eq!(letters["reason"], "permanent");
    let report = world.call(&["dlq", "redrive", "f", "--yes", "--json"]).exits(0).json();
    assert_eq!(report["status"], "completed");
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 1);
    assert!(flow.get("error").is_none(), "{flow:#}");
    assert_eq!(only(&flow, "a").unwrap()["status"], "succeeded");
    // A new round has a token of its own, and that is the one shown.
    let calls = handlers.requests("/a");
    assert_ne!(calls[0].token(), calls[1].token());
    let tokens = |flow: &Value| -> Vec<String> {
        flow["executions"]["a"]["work_items"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(tokens(&failed), [calls[0].token()]);
    assert_eq!(tokens(&flow), [calls[1].token()]);
    let found = World::eventually("a list that knows it", || {
        let found = served.post("/engine/flow/query", &json!({"statuses": ["completed"]})).is(200);
        (found["count"] == 1).then_some(found)
    });
    assert_eq!(found["flows"][0]["id"], "f");
    assert_eq!(world.call(&["dlq", "ls", "f", "--json"]).exits(0).out, "");
    assert_eq!(outcomes(&world.events_of("f")), ["status", "success"]);
}

#[test]
fn a_budget_is_shown_and_topped_up_while_the_flow_runs() {
    let world = World::new();
    let ok = Reply::outputs(&json!({"x": 1}));
    let handlers = StepServer::start()
        .on("/a", &[Reply::status(503), Reply::status(503).gated(), Reply::status(503), ok]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 9, "backoff": 1})));
    let wanted = json!({"id": "f", "goals": ["a"], "retry_budget": 1, "retry_budget_per_workflow": 5});
    served.post("/engine/flow", &wanted).is(201);
    handlers.wait_for("/a", 2);
    let budget = world.call(&["budget", "show", "f", "--json"]).exits(0).json();
    assert_eq!(
        (&budget["job_id"], &budget["total_budget"], &budget["consumed"]),
        (&json!("f"), &json!(1), &json!(1))
    );
    world.call(&["budget", "top-up", "f", "2"]).exits(0);
    World::eventually("a pool that was topped up", || {
        let budget = world.call(&["budget", "show", "f", "--json"]).exits(0).json();
        (budget["total_budget"] == 3).then_some(())
    });
    handlers.open("/a");
    served.ends("f", "completed");
    let budget = world.call(&["budget", "show", "f", "--json"]).exits(0).json();
    assert_eq!((&budget["total_budget"], &budget["consumed"]), (&json!(3), &json!(3)));
    assert_eq!(handlers.requests("/a").len(), 4);
}

#[test]
fn flows_are_archived_restored_and_removed_beside_the_server() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({})));
    for id in ["f", "g"] {
        let wanted = json!({"id": id, "goals": ["a"], "labels": {"k": "v"}});
        served.post("/engine/flow", &wanted).is(201);
        served.ends(id, "completed");
        served.deactivated(id);
    }
    let before = served.flow("f");
    let mut engine = served.follower();
    engine.subscribe(&json!({"aggregate_id": ["engine"]}));
    let archived = world.call(&["archive", "f"]).exits(0).out;
    let file = archived
        .lines()
        .find_map(|line| line.split_whitespace().find(|word| word.contains("f.undaunted.jsonl")))
        .unwrap()
        .to_owned();
    let kinds: Vec<String> = engine.until("flow_archived").iter().map(|event| text(&event["type"])).collect();
    assert_eq!(kinds, ["flow_archiving", "flow_archived"]);
    served.get("/engine/flow/f").refused(404);
    assert_eq!(served.get("/engine/flow").is(200)["count"], 1);
    world.call(&["restore", &file]).exits(0);
    assert_eq!(served.flow("f"), before);
    let found = served.post("/engine/flow/query", &json!({"labels": {"k": "v"}})).is(200);
    assert_eq!(found["count"], 2);
    // What is there already is not begun again.
    served.begin("f", "a", &json!({}));
    assert_eq!(handlers.all().len(), 2);

    world.call(&["rm", "g", "--yes"]).exits(0);
    served.get("/engine/flow/g").refused(404);
    World::eventually("a list without it", || {
        (served.get("/engine/flow").is(200)["count"] == 1).then_some(())
    });
    // A name that is free again may be used again.
    served.begin("g", "a", &json!({}));
    served.ends("g", "completed");
    assert_eq!(handlers.all().len(), 3);
}
