//! The API as a client of Argyll uses it: steps, plans, flows, and what is refused.

use serde_json::{Value, json};

use crate::client::Connection;
use crate::history::assert_fields;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, provider, step};

/// A definition with every kind of attribute.
fn process(handlers: &ScriptedServer) -> Value {
    let attributes = json!({
        "order": {"role": "required", "type": "object"},
        "region": {"role": "optional", "type": "string", "default": "\"EU\"", "mapping": {"name": "area"}},
        "currency": {"role": "const", "type": "string", "default": "\"EUR\""},
        "receipt": {"role": "output", "type": "any"},
    });
    let more = json!({
        "work_config": {"max_retries": 3, "backoff": 100, "max_backoff": 5000, "backoff_type": "exponential", "parallelism": 5},
        "memoizable": false, "labels": {"team": "orders"},
    });
    let mut step = step(handlers, "process", &attributes, &more);
    step["http"]["timeout"] = json!(5000);
    step
}

#[test]
fn steps_are_registered_shown_updated_and_removed_and_stay_over_a_restart() {
    let (sandbox, handlers) = (Sandbox::new(), ScriptedServer::start());
    let served = RunningServer::on(&sandbox);
    let process = process(&handlers);
    let answer = served.post("/engine/step", &process).is(201);
    assert_eq!(answer["step"], process);
    // Registering the same definition again changes nothing.
    served.post("/engine/step", &process).is(201);
    let mut other = process.clone();
    other["name"] = json!("another name");
    let error = served.post("/engine/step", &other).refused(409);
    assert!(error.contains("`process`"), "{error}");
    assert_eq!(served.get("/engine/step/process").is(200), process);
    let updated = served.ask("PUT", "/engine/step/process", &other.to_string());
    assert_eq!(updated.is(200)["step"], other);
    let wrong = served.ask("PUT", "/engine/step/another", &other.to_string());
    wrong.refused(400);
    let mut unknown = other.clone();
    unknown["id"] = json!("unknown");
    let unknown = served.ask("PUT", "/engine/step/unknown", &unknown.to_string());
    unknown.refused(404);
    served.get("/engine/step/unknown").refused(404);
    served.ask("DELETE", "/engine/step/unknown", "").refused(404);
    served.kill();

    let served = RunningServer::on(&sandbox);
    let listed = json!({"steps": [other], "count": 1});
    assert_eq!(served.get("/engine/step").is(200), listed);
    served.ask("DELETE", "/engine/step/process", "").is(200);
    served.get("/engine/step/process").refused(404);
    served.register(&process);
}

#[test]
fn an_invalid_definition_is_refused_with_the_reason() {
    let (sandbox, handlers) = (Sandbox::new(), ScriptedServer::start());
    let served = RunningServer::on(&sandbox);
    for (pointer, value, word) in [
        ("/work_config/backoff", json!(-1), "backoff"),
        ("/work_config/max_backoff", json!(50), "max_backoff"),
        ("/work_config/backoff_type", json!("cubic"), "cubic"),
        ("/work_config/max_retries", json!(-2), "max_retries"),
        ("/work_config/max_retries", json!("many"), "max_retries"),
        ("/work_config/parallelism", json!(-1), "parallelism"),
        ("/http/timeout", json!(-5), "timeout"),
        ("/http/endpoint", json!("ftp://somewhere/x"), "ftp://somewhere/x"),
        ("/http/endpoint", json!("not an address"), "not an address"),
        ("/http/endpoint", json!(""), "URL"),
        ("/http", json!({}), "endpoint"),
        ("/type", json!("script"), "script"),
        ("/type", json!("magic"), "magic"),
        ("/memoizable", json!(true), "memoizable"),
        ("/labels", json!(["a"]), "labels"),
        ("/attributes/order/role", json!("guest"), "guest"),
        ("/attributes/order/type", json!("colour"), "colour"),
        ("/attributes/region/default", json!("{"), "default"),
        ("/attributes/receipt/for_each", json!(true), "for_each"),
        ("/id", json!(""), "name"),
        ("/id", json!({}), "id"),
    ] {
        let mut wrong = process(&handlers);
        *wrong.pointer_mut(pointer).unwrap_or(&mut json!(null)) = value.clone();
        if pointer == "/attributes/receipt/for_each" {
            wrong["attributes"]["receipt"]["for_each"] = value.clone();
        }
        let error = served.post("/engine/step", &wrong).refused(400);
        assert!(error.contains(word), "{pointer} = {value}: {error}");
    }
    let mut scripted = process(&handlers);
    scripted["predicate"] = json!({"language": "lua", "script": "return true"});
    let error = served.post("/engine/step", &scripted).refused(400);
    assert!(error.contains("lua"), "{error}");
    for wrong in ["", "{", "[]", "null", "7", "{}", "\u{0}"] {
        served.ask("POST", "/engine/step", wrong).refused(400);
    }
    let listed = json!({"steps": [], "count": 0});
    assert_eq!(served.get("/engine/step").is(200), listed);
}

#[test]
fn a_plan_is_previewed_and_nothing_is_begun() {
    let (sandbox, handlers) = (Sandbox::new(), ScriptedServer::start());
    let served = RunningServer::on(&sandbox);
    let process = process(&handlers);
    served.register(&process);
    let fetch = json!({"number": {"role": "required"}, "order": {"role": "output"}});
    served.register(&step(&handlers, "fetch", &fetch, &json!({})));
    served.register(&provider(&handlers, "elsewhere", &json!({})));

    let plan = served.post("/engine/plan", &json!({"goals": ["process"]}));
    let plan = plan.is(200);
    assert_fields!(plan, {"goals": ["process"], "required": ["number"]});
    let steps: Vec<&String> = plan["steps"].as_object().unwrap().keys().collect();
    assert_eq!(steps, ["fetch", "process"]);
    let order = json!({"providers": ["fetch"], "consumers": ["process"]});
    assert_eq!(plan["attributes"]["order"], order);

    // Initial attributes need no step that outputs them.
    let aim = json!({"goals": ["process"], "init": {"order": {}}});
    let plan = served.post("/engine/plan", &aim).is(200);
    assert_eq!(plan["required"], json!([]));
    let steps: Vec<&String> = plan["steps"].as_object().unwrap().keys().collect();
    assert_eq!(steps, ["process"]);
    served.post("/engine/plan", &json!({"goals": ["unknown"]})).refused(404);
    served.post("/engine/plan", &json!({"goals": []})).refused(400);
    served.post("/engine/plan", &json!({})).refused(400);
    assert!(served.list().is_empty());
    assert!(handlers.all().is_empty());
}

#[test]
fn a_flow_is_started_once_under_a_clean_name() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/process", &[Reply::outputs(&json!({"receipt": 17}))]);
    let served = RunningServer::on(&sandbox);
    served.register(&process(&handlers));
    let start = |id: &str, init: Value| {
        let flow = json!({"id": id, "goals": ["process"], "init": init, "labels": {"k": "v"}, "unknown": 1});
        served.post("/engine/flow", &flow)
    };
    let init = json!({"order": {"id": 7}, "region": "US"});
    let answer = start("My Flow: Nr. 1/ä", init.clone()).is(201);
    assert_eq!(answer["flow_id"], "my-flow-nr.-1");
    let flow = served.wait_for_end("my-flow-nr.-1", "completed");
    assert_eq!(flow["labels"], json!({"k": "v"}));
    assert_fields!(flow["attributes"]["receipt"], {"value": 17, "step": "process"});

    // Starting the same flow again is accepted, also after it has ended, and starts nothing.
    let again = start("my flow nr. 1", init.clone()).is(201);
    assert_eq!(again["flow_id"], "my-flow-nr.-1");
    let error = start("my-flow-nr.-1", json!({"order": {"id": 8}, "region": "US"})).refused(409);
    assert!(error.contains("my-flow-nr.-1"), "{error}");
    served.register(&provider(&handlers, "other", &json!({})));
    let other = json!({"id": "my-flow-nr.-1", "goals": ["other"], "init": init});
    served.post("/engine/flow", &other).refused(409);

    let error = start("f", json!({"region": "US"})).refused(400);
    assert!(error.contains("order"), "{error}");
    let unknown = json!({"id": "f", "goals": ["unknown"]});
    let error = served.post("/engine/flow", &unknown).refused(404);
    assert!(error.contains("`unknown`"), "{error}");
    for nothing in ["", " ", "/", ".", "..", "ä"] {
        start(nothing, init.clone()).refused(400);
    }
    let calls = handlers.all();
    assert_eq!(calls.len(), 1);
    let body = calls[0].json();
    assert_eq!(body["arguments"], json!({"order": {"id": 7}, "area": "US", "currency": "EUR"}));
    let metadata = body["metadata"].as_object().unwrap();
    let keys: Vec<&String> = metadata.keys().collect();
    assert_eq!(keys, ["flow_id", "receipt_token", "step_id"]);
    assert_eq!(body["metadata"]["flow_id"], "my-flow-nr.-1");
    assert_eq!(body["metadata"]["receipt_token"], calls[0].token());
    assert_eq!(served.list().len(), 1);
}

#[test]
fn every_error_has_the_same_json_shape() {
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    for (method, path, body, status) in [
        ("GET", "/", "", 404),
        ("GET", "/engine/nothing", "", 404),
        ("GET", "/engine/flow/unknown", "", 404),
        ("GET", "/engine/flow/%FF", "", 404),
        ("GET", "/engine/flow/..%2f..", "", 404),
        ("GET", "/engine/health/unknown", "", 404),
        ("POST", "/webhook/f/s/t", r#"{"success":true}"#, 404),
        ("POST", "/webhook/f/s/t/u", "{}", 404),
        ("POST", "/webhook/f/s", "{}", 404),
        ("DELETE", "/engine/flow", "", 405),
        ("PUT", "/engine/flow/f", "{}", 405),
        ("POST", "/health", "{}", 405),
        ("GET", "/webhook/f/s/t", "", 405),
        ("GET", "/engine/plan", "", 405),
        ("GET", "/engine/ws", "", 400),
        ("POST", "/engine/flow", "", 400),
        ("POST", "/engine/flow", "[1]", 400),
        ("POST", "/engine/flow", r#"{"id":"f","goals":"a"}"#, 400),
        ("POST", "/engine/flow/query", r#"{"limit":"x"}"#, 400),
        ("POST", "/engine/flow/query", r#"{"limit":100000}"#, 400),
        ("POST", "/engine/flow/query", r#"{"cursor":"x"}"#, 400),
        ("POST", "/engine/flow/query", r#"{"sort":"x"}"#, 400),
        ("POST", "/engine/flow/query", r#"{"statuses":["x"]}"#, 400),
    ] {
        let answer = served.ask(method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        answer.refused(status);
    }
    // A connection stays usable after an error.
    let mut connection = Connection::open(served.address());
    for _ in 0..3 {
        connection.ask("GET", "/nowhere", "").unwrap().refused(404);
        connection.ask("GET", "/health", "").unwrap().is(200);
    }
}
