//! Every address, asked over a real socket.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;
use undaunted_engine::catalog::CatalogEvent;

use crate::fixture::TestServer;
use crate::fixture::{T0, TestFlow, text};

use super::*;

fn step(id: &str) -> Value {
    json!({
        "id": id, "name": id, "type": "sync", "http": {"endpoint": "http://s/a", "timeout": 0},
        "attributes": {
            "x": {"role": "required", "type": "any", "for_each": false},
            "y": {"role": "output", "type": "any"},
        },
    })
}

#[track_caller]
fn refused((status, body): (u16, Value), expected: u16) -> String {
    assert_eq!(status, expected, "{body}");
    assert_eq!(body["status"], expected);
    body["error"].as_str().unwrap().to_owned()
}

#[test]
fn steps_are_registered_shown_updated_and_removed() {
    let test_server = TestServer::start();
    let (status, body) = test_server.post("/engine/step", &step("a"));
    assert_eq!(status, 201);
    assert_eq!(body["message"], "Step registered");
    assert_eq!(body["step"], step("a"));
    assert_eq!(test_server.get("/engine/step/a"), (200, step("a")));
    let listed = json!({"steps": [step("a")], "count": 1});
    assert_eq!(test_server.get("/engine/step"), (200, listed));

    // The same again changes nothing, also if it is said in other words.
    let records = || test_server.catalog.cached(|_, version| version);
    let before = records();
    let mut same = step("a");
    same["memoizable"] = json!(false);
    same["labels"] = json!({});
    same["predicate"] = json!(null);
    let _ = same["attributes"]["x"].as_object_mut().unwrap().remove("for_each");
    assert_eq!(test_server.post("/engine/step", &same).0, 201);
    assert_eq!(records(), before);

    let mut other = step("a");
    other["name"] = json!("other");
    let _ = refused(test_server.post("/engine/step", &other), 409);
    let (status, body) = test_server.ask("PUT", "/engine/step/a", &other.to_string());
    assert_eq!((status, &body["message"]), (200, &json!("Step updated")));
    assert_eq!(test_server.get("/engine/step/a").1["name"], "other");
    let _ = refused(test_server.ask("PUT", "/engine/step/b", &other.to_string()), 400);
    let unknown = test_server.ask("PUT", "/engine/step/b", &step("b").to_string());
    let _ = refused(unknown, 404);

    assert_eq!(test_server.ask("DELETE", "/engine/step/a", "").0, 200);
    let _ = refused(test_server.ask("DELETE", "/engine/step/a", ""), 404);
    let _ = refused(test_server.get("/engine/step/a"), 404);
    assert_eq!(test_server.get("/engine/step").1["count"], 0);
}

#[test]
fn an_invalid_definition_is_refused() {
    let test_server = TestServer::start();
    for wrong in ["", "{", "[]", "null", "{}", r#"{"id":"a","type":"script"}"#] {
        let _ = refused(test_server.ask("POST", "/engine/step", wrong), 400);
    }
    let large = format!("{{\"id\":\"{}\"}}", "x".repeat(5 << 20));
    let _ = refused(test_server.ask("POST", "/engine/step", &large), 413);
    assert_eq!(test_server.get("/engine/step").1["count"], 0);
}

#[test]
fn keys_and_values_that_are_not_supported_are_refused_by_name() {
    let test_server = TestServer::start();
    for (place, value, named) in [
        (
            "/attributes/x/mapping",
            json!({"name": "z", "script": {"language": "jpath", "script": "$"}}),
            "script",
        ),
        ("/compensate", json!({"endpoint": "http://s/undo"}), "compensate"),
        ("/work_config", json!({"init_backoff": 5}), "init_backoff"),
        ("/name", json!(""), "empty"),
        ("/id", json!(""), "empty"),
        ("/attributes/x", json!({"role": "required", "default": "1"}), "default"),
        ("/attributes/x", json!({"role": "required", "type": "string", "for_each": true}), "for_each"),
        ("/http/method", json!("TRACE"), "TRACE"),
        ("/http/endpoint", json!("http://s/{z}"), "{z}"),
    ] {
        let mut wrong = step("a");
        let (parent, key) = place.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[key] = value;
        let error = refused(test_server.post("/engine/step", &wrong), 400);
        assert!(error.contains(named), "{place}: {error}");
    }
    let mut fine = step("a");
    fine["http"] = json!({"endpoint": "http://s/{x}", "method": "GET"});
    assert_eq!(test_server.post("/engine/step", &fine).0, 201);
}

#[test]
fn flows_are_started_under_a_normalized_id_or_refused_with_a_reason() {
    let test_server = TestServer::start();
    assert_eq!(test_server.post("/engine/step", &step("a")).0, 201);
    let asked = json!({
        "id": "My Flow", "goals": ["a"], "init": {"x": 1}, "labels": {"k": "v"},
        "retry_budget": 5, "best_effort": true, "best_effort_min_dcs": 2, "more": [],
    });
    let (status, body) = test_server.post("/engine/flow", &asked);
    assert_eq!((status, body), (201, json!({"message": "Flow started", "flow_id": "my-flow"})));
    let (_, flow) = test_server.get("/engine/flow/my-flow");
    assert_eq!(flow["labels"], json!({"k": "v"}));
    assert_eq!(flow["attributes"]["x"]["value"], 1);
    assert_eq!(flow["plan"]["goals"], json!(["a"]));
    let start = |id: &str, init: Value| {
        test_server.post("/engine/flow", &json!({"id": id, "goals": ["a"], "init": init}))
    };
    assert_eq!(start("my flow", json!({"x": 1})).0, 201);
    let other = refused(start("My Flow", json!({"x": 2})), 409);
    assert!(other.contains("my-flow"), "{other}");
    let missing = refused(start("f", json!({})), 400);
    assert!(missing.contains('x'), "{missing}");
    let unknown = test_server.post("/engine/flow", &json!({"id": "f", "goals": ["b"]}));
    assert!(refused(unknown, 404).contains("`b`"));
    let _ = refused(start(":", json!({"x": 1})), 400);
    for (field, value) in [
        ("goals", json!([])),
        ("goals", json!("a")),
        ("goals", json!([1])),
        ("init", json!([])),
        ("labels", json!({"a": 1})),
        ("id", json!(7)),
        ("retry_budget", json!(-1)),
        ("retry_budget", json!("many")),
        ("retry_budget_per_workflow", json!(1.5)),
        ("best_effort", json!("yes")),
        ("best_effort_min_dcs", json!(-1)),
        ("best_effort_deadline_seconds", json!(-1)),
    ] {
        let mut asked = json!({"id": "f", "goals": ["a"]});
        asked[field] = value.clone();
        let error = refused(test_server.post("/engine/flow", &asked), 400);
        assert!(error.contains(&format!("`{field}`")), "{field} {value}: {error}");
    }
}

#[test]
fn a_plan_is_a_preview() {
    let test_server = TestServer::start();
    assert_eq!(test_server.post("/engine/step", &step("a")).0, 201);
    let (status, plan) = test_server.post("/engine/plan", &json!({"goals": ["a"]}));
    assert_eq!(status, 200);
    assert_eq!(plan["steps"]["a"]["http"]["endpoint"], "http://s/a");
    assert_eq!(plan["required"], json!(["x"]));
    assert_eq!(plan["attributes"]["y"]["providers"], json!(["a"]));
    assert_eq!(plan["excluded"], json!({}));
    // A second provider of `x` lacks an input: the plan leaves it out and says why.
    for (id, gives) in [("works", json!({})), ("lacks", json!({"q": {"role": "required"}}))] {
        let mut provider = step(id);
        provider["attributes"] = gives;
        provider["attributes"]["x"] = json!({"role": "output"});
        assert_eq!(test_server.post("/engine/step", &provider).0, 201);
    }
    let (status, plan) = test_server.post("/engine/plan", &json!({"goals": ["a"]}));
    assert_eq!((status, &plan["required"]), (200, &json!([])));
    assert_eq!(plan["excluded"], json!({"missing": {"lacks": ["q"]}}));
    assert_eq!(plan["attributes"]["x"]["providers"], json!(["works"]));
    let (status, plan) = test_server.post("/engine/plan", &json!({"goals": ["a"], "init": {"q": 1}}));
    assert_eq!((status, &plan["excluded"]), (200, &json!({})));
    assert_eq!(test_server.post("/engine/flow", &json!({"id": "f", "goals": ["a"]})).0, 201);
    assert_eq!(test_server.get("/engine/flow/f").1["plan"]["excluded"], json!({"missing": {"lacks": ["q"]}}));
    let _ = refused(test_server.post("/engine/plan", &json!({"goals": ["b"]})), 404);
    let _ = refused(test_server.post("/engine/plan", &json!({"goals": []})), 400);
}

#[test]
fn a_flow_is_shown_with_its_labels_and_listed() {
    let test_server = TestServer::start();
    let steps = [("a", "x: {role: required}, y: {role: output}", "")];
    let mut test_flow = TestFlow::on(test_server.store.clone(), "wf-1", &text("a", "x: 1", &steps));
    test_flow.start();
    test_server.catalog.note(CatalogEvent::FlowActivated {
        flow: "wf-1".to_owned(),
        since: T0,
        labels: vec![("k".to_owned(), "v".to_owned())],
        parent: Some("above".to_owned()),
    });
    test_server.catalog.flush().unwrap();
    let (status, flow) = test_server.get("/engine/flow/wf-1");
    assert_eq!(status, 200);
    assert_eq!(flow["labels"], json!({"k": "v"}));
    assert_eq!(flow["metadata"]["parent_flow_id"], "above");
    assert_eq!(flow["executions"]["a"]["status"], "active");
    let _ = refused(test_server.get("/engine/flow/unknown"), 404);
    let _ = refused(test_server.get("/engine/flow/%FF"), 404);

    test_server.catalog.note(CatalogEvent::FlowActivated {
        flow: "wf-2".to_owned(),
        since: T0,
        labels: Vec::new(),
        parent: None,
    });
    test_server.catalog.flush().unwrap();
    let (status, listed) = test_server.get("/engine/flow");
    assert_eq!((status, listed.as_array().unwrap().len()), (200, 1));
    assert_eq!((&listed[0]["id"], &listed[0]["digest"]["status"]), (&json!("wf-2"), &json!("active")));
    let (status, found) = test_server.post("/engine/flow/query", &json!({"id_prefix": "wf"}));
    assert_eq!((status, &found["count"]), (200, &json!(1)));
    let _ = refused(test_server.ask("POST", "/engine/flow/query", ""), 400);

    let (status, engine) = test_server.get("/engine");
    assert_eq!(status, 200);
    assert_eq!(engine["active"]["wf-1"]["parent_flow_id"], "above");
    assert_eq!(engine["flow_digests"]["wf-2"]["status"], "active");
    assert_eq!(test_server.get("/engine/").0, 200);
}

#[test]
fn health_metrics_and_results_are_answered_and_unknown_addresses_are_refused_in_json() {
    let test_server = TestServer::start();
    assert_eq!(test_server.get("/health"), (200, json!({"service": "undaunted", "status": "healthy"})));
    // HEAD is answered where GET is, with the same head and no body.
    for (path, status) in [("/health", 200), ("/ready", 503), ("/engine/flow", 200), ("/engine/flow/x", 404)]
    {
        let found = test_server.ask("HEAD", path, "");
        assert_eq!(found, (status, Value::String(String::new())), "{path}");
        assert_eq!(test_server.get(path).0, status);
    }
    let (status, text) = test_server.get("/metrics");
    assert_eq!(status, 200);
    assert!(text.as_str().unwrap().contains("undaunted_flows{status=\"active\"} 0"));
    let result = json!({"success": true});
    let send = |token: &str| test_server.post(&format!("/webhook/f/s/{token}"), &result);
    let _ = refused(send("x"), 404);
    let _ = refused(test_server.get("/webhook/f/s/known"), 405);
    let _ = refused(test_server.get("/"), 404);
    let _ = refused(test_server.get("/engine/nothing"), 404);
    let _ = refused(test_server.ask("DELETE", "/engine/flow", ""), 405);
    let _ = refused(test_server.get("/engine/ws"), 400);
    let plain = crate::fixture::request(
        "POST",
        "/engine/flow",
        &["Host: localhost", "Content-Type: text/plain"],
        "{}",
    );
    let (status, _, body) = crate::fixture::say(test_server.server.address(), &plain);
    let _ = refused((status, body), 415);
}

#[test]
fn a_server_is_ready_once_its_flows_were_recovered_and_healthy_before() {
    let test_server = TestServer::start();
    assert_eq!(test_server.get("/health").0, 200);
    let why = refused(test_server.get("/ready"), 503);
    assert!(why.contains("recovery"), "{why}");
    let _ = test_server.host.recover().unwrap();
    assert_eq!(test_server.get("/ready"), (200, json!({"service": "undaunted", "status": "ready"})));
    test_server.host.interrupt();
    let why = refused(test_server.get("/ready"), 503);
    assert!(why.contains("shutting down"), "{why}");
    assert_eq!(test_server.get("/health").0, 200);
}

#[test]
fn the_token_of_a_webhook_is_checked_before_its_body_is_read() {
    let test_server = TestServer::start();
    let head = "POST /webhook/f/s/unknown HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n";
    let mut stream = std::net::TcpStream::connect(test_server.server.address()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    // Nothing of the body was sent.
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
}

#[test]
fn steps_are_health_checked() {
    let test_server = TestServer::with_frequent_health_checks();
    let mut known = step("a");
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = there.local_addr().unwrap();
    known["http"]["health_check"] = json!(format!("http://{address}/health"));
    let well = Arc::new(AtomicBool::new(true));
    let asked = Arc::new(AtomicUsize::new(0));
    let (is_well, times) = (Arc::clone(&well), Arc::clone(&asked));
    let _ = std::thread::spawn(move || {
        for stream in there.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).unwrap();
            let _ = times.fetch_add(1, Ordering::SeqCst);
            let status = if is_well.load(Ordering::SeqCst) { "200 OK" } else { "500 No" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    assert_eq!(test_server.post("/engine/step", &step("silent")).0, 201);
    assert_eq!(test_server.post("/engine/step", &known).0, 201);
    let until = |status: &str| {
        while test_server.get("/engine/health/a").1["status"] != status {
            std::thread::yield_now();
        }
    };
    until("healthy");
    well.store(false, Ordering::SeqCst);
    until("unhealthy");
    let (_, all) = test_server.get("/engine/health");
    assert_eq!(all["count"], 2);
    assert_eq!(all["health"]["a"]["error"], "HTTP 500");
    assert_eq!(all["health"]["silent"], json!({"status": "unknown"}));
    let _ = refused(test_server.get("/engine/health/b"), 404);
    // Nothing is recorded as long as nothing changes, however often it is looked at.
    let before = asked.load(Ordering::SeqCst);
    while asked.load(Ordering::SeqCst) < before + 3 {
        std::thread::yield_now();
    }
    let changes = |test_server: &TestServer| {
        let records = test_server.catalog.records_after(undaunted_store::Version::EMPTY);
        let records = records.unwrap().into_iter();
        records.filter(|(_, it)| it.event.word() == "step_health_changed").count()
    };
    assert_eq!(changes(&test_server), 2);
    well.store(true, Ordering::SeqCst);
    until("healthy");
    assert_eq!(changes(&test_server), 3);
}
