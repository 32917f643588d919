//! Flows by file, against a real step server.

use serde_json::{Value, json};

use crate::history::{all, assert_fields, count_outcomes, one, outcomes};
use crate::http::assert_one_request_per_attempt;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;

/// A flow whose steps a server handles. A step is its id, its attributes, and further settings; its path is
/// its id.
pub(crate) fn flow(server: &ScriptedServer, head: &str, steps: &[(&str, &str, &str)]) -> Sandbox {
    let steps = steps.iter().map(|(id, attributes, more)| {
        let endpoint = server.url(&format!("/{id}"));
        format!(
            "  - {{id: {id}, type: sync, http: {{endpoint: '{endpoint}'}}, attributes: {{{attributes}}}{more}}}\n"
        )
    });
    let steps: String = steps.collect();
    Sandbox::of(&format!("mode: flow\n{head}\nsteps:\n{steps}"))
}

/// A flow of one step with these replies and this `work_config`.
pub(crate) fn one_step(replies: &[Reply], work: &str) -> (ScriptedServer, Sandbox) {
    let server = ScriptedServer::start().on("/a", replies);
    let more = if work.is_empty() { String::new() } else { format!(", work_config: {{{work}}}") };
    let sandbox = flow(&server, "goals: [a]", &[("a", "x: {role: output}", &more)]);
    (server, sandbox)
}

const FAST: &str = ", work_config: {max_retries: 2, backoff: 1}";

pub(crate) fn items(report: &Value) -> [u64; 4] {
    ["total", "succeeded", "dead", "skipped"].map(|key| report["items"][key].as_u64().unwrap())
}

#[test]
fn a_flow_is_run_from_its_file_to_its_goal() {
    let server = ScriptedServer::start()
        .by("/price", |request| {
            let arguments = &request.arguments();
            let price = arguments["item"]["n"].as_u64().unwrap() * 10;
            Reply::outputs(&json!({"price": price, "currency": arguments["currency"]}))
        })
        .by("/sum", |request| {
            let prices = request.argument("price");
            let prices = prices.as_array().unwrap().iter();
            let sum: u64 = prices.map(|each| each["price"].as_u64().unwrap()).sum();
            Reply::outputs(&json!({"total": sum}))
        })
        .on("/tell", &[Reply::status(503), Reply::done()]);
    let sandbox = flow(
        &server,
        "goals: [tell]\ninit: {items: [{n: 1}, {n: 2}, {n: 3}]}",
        &[
            ("tell", "total: {role: required}, to: {role: const, default: '\"me\"'}", FAST),
            ("sum", "price: {role: required}, total: {role: output}", FAST),
            ("unused", "total: {role: required}", FAST),
            (
                "price",
                "items: {role: required, for_each: true, mapping: {name: item}},
                 currency: {role: optional, default: '\"EUR\"'}, price: {role: output}",
                ", work_config: {parallelism: 3}",
            ),
        ],
    );
    sandbox.call(&["check", "w.yaml"]).exits(0);
    let report = sandbox.run().exits(0).json();
    // The items of all steps are counted.
    assert_eq!(items(&report), [5, 5, 0, 0]);
    assert_fields!(report, {"attempts": 6, "retries": 1});
    let events = sandbox.lawful_events();
    assert_one_request_per_attempt(&server, &events);
    assert!(server.requests("/unused").is_empty());
    let requests = server.requests("/tell");
    assert_eq!(requests[0].arguments(), json!({"total": 60, "to": "me"}));
    assert_eq!(requests[0].token(), requests[1].token());
    let set = all(&events, "attribute_set");
    assert_eq!(set[1]["value"], 60, "{set:#?}");
}

#[test]
fn a_step_is_called_as_its_handlers_expect() {
    let (server, sandbox) = one_step(&[Reply::status(500), Reply::done()], "max_retries: 1, backoff: 1");
    let report = sandbox.run().exits(0).json();
    let sent = server.all();
    for request in &sent {
        assert_eq!(request.method, "POST");
        assert_eq!(request.header("content-type"), Some("application/json"));
        let body = request.json();
        assert_eq!(body["arguments"], json!({}));
        assert_eq!(body["metadata"]["flow_id"], report["job"]);
        assert_eq!(body["metadata"]["step_id"], "a");
        assert_eq!(body["metadata"]["receipt_token"], request.token());
        assert!(body["metadata"].get("webhook_url").is_none());
    }
    assert_eq!(sent[0].json(), sent[1].json(), "the token is the same");
    assert_eq!(sent[0].token().split('-').count(), 5, "a UUID");
}

#[test]
fn a_flow_killed_in_calls_sends_them_again_with_the_same_tokens_and_nothing_that_was_done() {
    let server = ScriptedServer::start()
        .on("/first", &[Reply::outputs(&json!({"x": [1, 2, 3]}))])
        .on("/each", &[Reply::outputs(&json!({"y": 0})).gated()])
        .on("/last", &[Reply::done()]);
    let sandbox = flow(
        &server,
        "goals: [last]",
        &[
            ("first", "x: {role: output}", FAST),
            (
                "each",
                "x: {role: required, for_each: true}, y: {role: output}",
                ", work_config: {max_retries: 2, backoff: 1, parallelism: 3}",
            ),
            ("last", "y: {role: required}", FAST),
        ],
    );
    let engine = sandbox.start_run();
    server.wait_for("/each", 3);
    engine.kill();
    server.open("/each");
    let report = sandbox.resume().exits(0).json();
    assert_eq!(items(&report), [5, 5, 0, 0]);
    assert_eq!(server.requests("/first").len(), 1);
    let sent = server.requests("/each");
    assert_eq!(sent.len(), 6);
    for before in &sent[..3] {
        let again = sent[3..].iter().find(|it| it.token() == before.token());
        assert_eq!(again.unwrap().json(), before.json());
    }
    let last = &server.requests("/last")[0].argument("y");
    assert_eq!(last, &json!([{"x": 1, "y": 0}, {"x": 2, "y": 0}, {"x": 3, "y": 0}]));
    let events = sandbox.lawful_events();
    let interrupted = count_outcomes(&events, "interrupted");
    assert_eq!(interrupted, 3);
}

#[test]
fn a_flow_killed_again_and_again_finishes_and_every_attempt_has_its_token() {
    let server = ScriptedServer::start()
        .by("/each", |request| {
            let n = request.argument("n").as_u64().unwrap();
            Reply::outputs(&json!({"y": n}))
        })
        .on("/last", &[Reply::done()]);
    let numbers: Vec<u32> = (0..30).collect();
    let sandbox = flow(
        &server,
        &format!("goals: [last]\ninit: {{n: {numbers:?}}}"),
        &[
            (
                "each",
                "n: {role: required, for_each: true}, y: {role: output}",
                ", work_config: {max_retries: 9, backoff: 1, parallelism: 3}",
            ),
            ("last", "y: {role: required}", FAST),
        ],
    );
    let mut engine = sandbox.start_run();
    for kills in 1..=4 {
        server.wait_for("/each", kills * 5);
        engine.kill();
        engine = sandbox.start_resume();
    }
    let report = engine.wait().exits(0).json();
    assert_eq!(items(&report), [31, 31, 0, 0]);
    let mut tokens = std::collections::BTreeMap::new();
    for request in server.requests("/each") {
        let n = request.argument("n").as_u64().unwrap();
        let token = tokens.entry(n).or_insert_with(|| request.token().to_owned());
        assert_eq!(token, request.token(), "{n}");
    }
    let different: std::collections::BTreeSet<_> = tokens.values().collect();
    assert_eq!(different.len(), 30);
    let last = &server.requests("/last")[0].argument("y");
    let expected: Vec<Value> = numbers.iter().map(|n| json!({"n": n, "y": n})).collect();
    assert_eq!(last, &json!(expected));
    sandbox.lawful_events();
}

#[test]
fn a_failed_goal_fails_the_flow_and_a_redrive_uses_another_token() {
    let server =
        ScriptedServer::start().on("/a", &[Reply::refusal("out of stock")]).on("/b", &[Reply::done()]);
    let sandbox =
        flow(&server, "goals: [b]", &[("a", "x: {role: output}", FAST), ("b", "x: {role: required}", FAST)]);
    let report = sandbox.run().exits(1).json();
    assert_eq!(report["status"], "failed");
    assert!(report["error"].as_str().unwrap().contains("out of stock"), "{report}");
    // A step that never started counts in the total and is listed as missing.
    assert_eq!(items(&report), [2, 0, 1, 0]);
    assert_eq!(report["missing"][0]["item"], "b", "{report}");
    assert_eq!(one(&sandbox.events(), "step_unreachable")["step"], "b");
    assert_eq!(sandbox.dead_letters()[0]["item"], "a");
    server.answers("/a", &[Reply::outputs(&json!({"x": 5}))]);
    let redriven = sandbox.redrive().exits(0);
    assert_eq!(items(&redriven.json()), [2, 2, 0, 0]);
    let sent = server.requests("/a");
    assert_ne!(sent[0].token(), sent[1].token());
    assert_eq!(server.requests("/b")[0].arguments(), json!({"x": 5}));
}

#[test]
fn a_step_with_a_condition_that_does_not_hold_is_not_called() {
    let server = ScriptedServer::start()
        .on("/a", &[Reply::outputs(&json!({"n": 5}))])
        .on("/b", &[Reply::outputs(&json!({"y": 1}))])
        .on("/c", &[Reply::done()]);
    let sandbox = flow(
        &server,
        "goals: [c]",
        &[
            ("a", "n: {role: output}", FAST),
            ("b", "n: {role: required}, y: {role: output}", ", predicate: {script: 'n > 10'}"),
            ("c", "y: {role: optional, default: '0'}", FAST),
        ],
    );
    let report = sandbox.run().exits(0).json();
    assert_eq!(items(&report), [2, 2, 0, 0]);
    assert!(server.requests("/b").is_empty());
    assert_eq!(server.requests("/c")[0].arguments(), json!({"y": 0}));
    assert_eq!(one(&sandbox.events(), "step_skipped")["step"], "b");
}

#[test]
fn a_flow_without_items_for_a_step_continues_with_an_empty_list() {
    let server = ScriptedServer::start().on("/b", &[Reply::done()]);
    let sandbox = flow(
        &server,
        "goals: [b]\ninit: {n: []}",
        &[
            ("a", "n: {role: required, for_each: true}, y: {role: output}", FAST),
            ("b", "y: {role: required}", FAST),
        ],
    );
    let report = sandbox.run().exits(0).json();
    assert_eq!(items(&report), [1, 1, 0, 0]);
    assert_eq!(server.requests("/b")[0].arguments(), json!({"y": []}));
}

#[test]
fn parallelism_bounds_the_calls_of_a_step() {
    let server = ScriptedServer::start().on("/a", &[Reply::done().gated()]);
    let sandbox = flow(
        &server,
        "goals: [a]\ninit: {n: [1, 2, 3, 4, 5, 6, 7]}",
        &[("a", "n: {role: required, for_each: true}", ", work_config: {parallelism: 3}")],
    );
    let engine = sandbox.start_run();
    server.wait_for("/a", 3);
    server.open("/a");
    engine.wait().exits(0);
    assert_eq!((server.all().len(), server.busiest()), (7, 3));
}

#[test]
fn a_call_has_the_timeout_of_its_step() {
    let server = ScriptedServer::start().on("/a", &[Reply::StallInBody, Reply::done()]);
    let (sandbox, _) = Sandbox::run_workflow(
        &format!(
            "
mode: flow
goals: [a]
steps:
  - id: a
    type: sync
    http: {{endpoint: '{}', timeout: 300}}
    work_config: {{max_retries: 1, backoff: 1}}
",
            server.url("/a")
        ),
        0,
    );
    assert_eq!(outcomes(&sandbox.events()), ["timeout", "success"]);
}

#[test]
fn a_cancelled_flow_ends_its_calls_and_an_interrupted_one_is_resumed() {
    let server = ScriptedServer::start().on("/a", &[Reply::x(1).gated()]).on("/b", &[Reply::done()]);
    let steps = [("a", "x: {role: output}", FAST), ("b", "x: {role: required}", FAST)];
    let cancelled = flow(&server, "goals: [b]", &steps);
    let engine = cancelled.start_run();
    server.wait_for("/a", 1);
    cancelled.call(&["cancel", "@last"]).exits(0);
    assert_eq!(engine.wait().exits(1).json()["status"], "cancelled");
    cancelled.lawful_events();
    let interrupted = flow(&server, "goals: [b]", &steps);
    let engine = interrupted.spawn(&["run", "w.yaml"]);
    server.wait_for("/a", 2);
    engine.interrupt();
    server.open("/a");
    engine.wait().exits(75);
    assert!(server.requests("/b").is_empty());
    interrupted.resume().exits(0);
    assert_eq!(server.requests("/a").len(), 2);
    assert_eq!(server.requests("/b").len(), 1);
}

#[test]
fn a_step_that_is_complete_by_its_rule_returns_partial_results() {
    let server = ScriptedServer::start()
        .by("/a", |request| {
            let n = request.argument("n");
            let reply = Reply::outputs(&json!({"y": n}));
            if n == 3 { reply.gated() } else { reply }
        })
        .on("/b", &[Reply::done()]);
    let sandbox = flow(
        &server,
        "goals: [b]\ninit: {n: [3, 2, 1]}",
        &[
            (
                "a",
                "n: {role: required, for_each: true}, y: {role: output}",
                ", work_config: {parallelism: 3}, best_effort: true, best_effort_min_dcs: 2",
            ),
            ("b", "y: {role: required}", FAST),
        ],
    );
    sandbox.run().exits(0);
    let given = server.requests("/b")[0].argument("y");
    assert_eq!(given, json!([{"n": 2, "y": 2}, {"n": 1, "y": 1}]));
    sandbox.lawful_events();
    server.open("/a");
}
