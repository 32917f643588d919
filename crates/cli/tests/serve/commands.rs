//! The command line beside a running server: the same flows, the same store.

use serde_json::{Value, json};

use crate::history::{assert_fields, kind, outcomes, text};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, one_step, only_item, provider, retries};

#[test]
fn flows_of_a_running_server_are_shown_explained_and_listed() {
    let (sandbox, handlers, served) = one_step(&[Reply::status(503), Reply::x(1).gated()], &retries(3));
    served.start_flow("f", "a", &json!({}));
    handlers.wait_for("/a", 2);
    let job = sandbox.json(&["show", "f", "--json"]);
    assert_eq!(job["job"], "f");
    let listed = sandbox.json(&["ls", "--json"]);
    assert_eq!(listed["job"], "f");
    let explained = sandbox.stdout(&["explain", "f/#0"]);
    assert!(explained.contains("503"), "{explained}");
    let follow = sandbox.spawn(&["events", "f", "--json", "--follow"]);
    handlers.open("/a");
    served.wait_for_end("f", "completed");
    let events = follow.wait().exits(0).json_lines();
    assert_eq!(events, sandbox.events_of("f"));
    // Resuming a job that has ended changes nothing, even if another process owns it.
    sandbox.call(&["resume", "f", "--json"]).exits(0);
    assert_eq!(events, sandbox.events_of("f"));
}

#[test]
fn a_flow_is_cancelled_paused_and_resumed_from_the_command_line() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .on("/a", &[Reply::x(1).gated()])
        .on("/wait", &[Reply::status(503), Reply::x(1)]);
    let served = RunningServer::on(&sandbox);
    served.register(&provider(&handlers, "a", &retries(1)));
    served.register(&provider(
        &handlers,
        "wait",
        &json!({"max_retries": 2, "backoff": 3000, "backoff_type": "fixed"}),
    ));
    served.start_flow("f", "a", &json!({}));
    handlers.wait_for("/a", 1);
    // Another process runs it: it cannot be resumed or removed.
    sandbox.call(&["resume", "f"]).exits(7);
    sandbox.call(&["rm", "f", "--force", "--yes"]).exits(7);
    sandbox.call(&["archive", "f"]);
    sandbox.call(&["cancel", "f"]).exits(0);
    let flow = served.wait_for_end("f", "failed");
    assert_eq!(kind(sandbox.events_of("f").last().unwrap()), "job_cancelled");
    assert!(!text(&flow["error"]).is_empty(), "{flow:#}");
    served.wait_for_deactivation("f");

    served.start_flow("g", "wait", &json!({}));
    served.wait_for_first_retry("g", "wait");
    sandbox.call(&["pause", "g"]).exits(0);
    sandbox.wait_for_event_of("g", "job_paused");
    assert_eq!(served.flow("g")["status"], "active");
    sandbox.call(&["unpause", "g"]).exits(0);
    served.wait_for_end("g", "completed");
    assert_eq!(handlers.requests("/wait").len(), 2);
}

#[test]
fn a_failed_flow_is_redriven_while_the_server_runs_and_the_api_shows_it() {
    let (sandbox, handlers, served) = one_step(&[Reply::status(400), Reply::x(1)], &retries(1));
    served.start_flow("f", "a", &json!({}));
    let failed = served.wait_for_end("f", "failed");
    served.wait_for_deactivation("f");
    let letters = sandbox.json(&["dlq", "ls", "f", "--json"]);
    assert_eq!(letters["reason"], "permanent");
    let report = sandbox.json(&["dlq", "redrive", "f", "--yes", "--json"]);
    assert_eq!(report["status"], "completed");
    let flow = served.completes_with_x("f", &json!(1));
    assert!(flow.get("error").is_none(), "{flow:#}");
    assert_eq!(only_item(&flow, "a").unwrap()["status"], "succeeded");
    // The new round has its own token, which the state shows.
    let calls = handlers.requests("/a");
    assert_ne!(calls[0].token(), calls[1].token());
    let tokens = |flow: &Value| -> Vec<String> {
        flow["executions"]["a"]["work_items"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(tokens(&failed), [calls[0].token()]);
    assert_eq!(tokens(&flow), [calls[1].token()]);
    let page = Sandbox::eventually("the flow in the list", || {
        let page = served.query(&json!({"statuses": ["completed"]}));
        (page["count"] == 1).then_some(page)
    });
    assert_eq!(page["flows"][0]["id"], "f");
    assert_eq!(sandbox.stdout(&["dlq", "ls", "f", "--json"]), "");
    assert_eq!(outcomes(&sandbox.events_of("f")), ["status", "success"]);
}

#[test]
fn a_budget_is_shown_and_topped_up_while_the_flow_runs() {
    let ok = Reply::x(1);
    let (sandbox, handlers, served) =
        one_step(&[Reply::status(503), Reply::status(503).gated(), Reply::status(503), ok], &retries(9));
    served.start_flow_with("f", &json!({"goals": ["a"], "retry_budget": 1, "retry_budget_per_workflow": 5}));
    handlers.wait_for("/a", 2);
    let budget = sandbox.json(&["budget", "show", "f", "--json"]);
    assert_fields!(budget, {"job_id": "f", "total_budget": 1, "consumed": 1});
    sandbox.call(&["budget", "top-up", "f", "2"]).exits(0);
    Sandbox::wait_until("a pool that was topped up", || {
        let budget = sandbox.json(&["budget", "show", "f", "--json"]);
        budget["total_budget"] == 3
    });
    handlers.open("/a");
    served.wait_for_end("f", "completed");
    let budget = sandbox.json(&["budget", "show", "f", "--json"]);
    assert_fields!(budget, {"total_budget": 3, "consumed": 3});
    assert_eq!(handlers.requests("/a").len(), 4);
}

#[test]
fn a_flow_submitted_with_a_pool_of_any_size_gets_the_operators_maximum() {
    let (sandbox, _, served) = one_step(&[Reply::x(1)], &json!({}));
    for (id, number) in [("f", json!(5_000_000_000_u64)), ("g", json!(1e20))] {
        let pool = json!({"goals": ["a"], "retry_budget": number, "retry_budget_per_workflow": number});
        served.start_flow_with(id, &pool);
        let budget = sandbox.json(&["budget", "show", id, "--json"]);
        assert_fields!(budget, {"total_budget": 50, "per_workflow_max": 5});
    }
    for number in [json!(-1), json!(1.5), json!("many")] {
        let refused =
            served.post("/engine/flow", &json!({"id": "h", "goals": ["a"], "retry_budget": number}));
        refused.is(400);
    }
}

#[test]
fn flows_are_archived_restored_and_removed_beside_the_server() {
    let (sandbox, handlers, served) = one_step(&[Reply::x(1)], &json!({}));
    for id in ["f", "g"] {
        served.start_flow_with(id, &json!({"goals": ["a"], "labels": {"k": "v"}}));
        served.wait_for_end(id, "completed");
        served.wait_for_deactivation(id);
    }
    let before = served.flow("f");
    let mut engine = served.follower();
    engine.subscribe(&json!({"aggregate_id": ["engine"]}));
    let archived = sandbox.stdout(&["archive", "f"]);
    let file = archived
        .lines()
        .find_map(|line| line.split_whitespace().find(|word| word.contains("f.undaunted.jsonl")))
        .unwrap()
        .to_owned();
    let kinds: Vec<String> =
        engine.read_until("flow_archived").iter().map(|event| text(&event["type"])).collect();
    assert_eq!(kinds, ["flow_archiving", "flow_archived"]);
    served.get("/engine/flow/f").refused(404);
    assert_eq!(served.list().len(), 1);
    sandbox.call(&["restore", &file]).exits(0);
    assert_eq!(served.flow("f"), before);
    let page = served.query(&json!({"labels": {"k": "v"}}));
    assert_eq!(page["count"], 2);
    // Starting an existing flow again starts nothing.
    served.start_flow("f", "a", &json!({}));
    assert_eq!(handlers.all().len(), 2);

    sandbox.call(&["rm", "g", "--yes"]).exits(0);
    served.get("/engine/flow/g").refused(404);
    Sandbox::wait_until("a list without the flow", || served.list().len() == 1);
    // The id of a removed flow can be used again.
    served.run_flow("g", "a", &json!({}), "completed");
    assert_eq!(handlers.all().len(), 3);
}
