//! Definitions of steps: which are refused, and what is ignored in them.

use serde_json::{Value, json};
use undaunted_engine::job::JobStage;
use undaunted_engine::workflow::plain_definition;

use crate::engine::HostOptions;
use crate::fixture::{FlowFixture, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

/// A definition with another value for a key.
fn with(key: &str, value: Value) -> Value {
    let mut step = json!({
        "id": "s", "type": "sync", "http": {"endpoint": "http://steps/s"},
        "attributes": {"x": {"role": "required"}},
    });
    let mut place = &mut step;
    for key in key.split('.') {
        place = &mut place[key];
    }
    *place = value;
    step
}

#[test]
fn the_error_of_a_step_definition_names_the_key_or_value() {
    let fixture = FlowFixture::new();
    let engine = fixture.engine();
    let cases = [
        (with("work_config", json!({"backoff": -1})), "backoff"),
        (with("work_config", json!({"max_backoff": -1})), "max_backoff"),
        (with("work_config", json!({"backoff": 100, "max_backoff": 99})), "max_backoff"),
        (with("work_config", json!({"backoff_type": "fibonacci"})), "fibonacci"),
        (with("work_config", json!({"max_retries": -2})), "max_retries"),
        (with("work_config", json!("often")), "work_config"),
        (with("type", json!("script")), "script"),
        (with("type", json!("sometimes")), "sometimes"),
        (with("type", Value::Null), "type"),
        (with("memoizable", json!(true)), "memoizable"),
        (with("predicate", json!({"language": "lua", "script": "x"})), "lua"),
        (with("predicate", json!({"language": "cel", "script": "x ==="})), "CEL"),
        (with("attributes.x.role", json!("perhaps")), "perhaps"),
        (with("attributes.x.type", json!("text")), "text"),
        (with("attributes.x", json!({"role": "const", "default": "{"})), "default"),
        (with("http", Value::Null), "http"),
        (with("http.endpoint", json!("ftp://steps/s")), "ftp://steps/s"),
        (with("http.endpoint", json!("steps")), "steps"),
        (with("id", Value::Null), "id"),
        (json!([]), ""),
        (json!("s"), ""),
        (json!({}), "id"),
    ];
    for (definition, named) in cases {
        let found = engine.host().check_step(&definition);
        let words = found.expect_err(&definition.to_string());
        assert!(words.contains(named), "{definition}: {words}");
        assert!(!words.is_empty(), "{definition}");
    }
    // Values at the limits are fine.
    for fine in [
        with("work_config", json!({"backoff": 100, "max_backoff": 100})),
        with("work_config", json!({"max_retries": -1, "backoff": 0})),
        with("memoizable", json!(false)),
        with("predicate", json!({"language": "cel", "script": "x == 1"})),
    ] {
        let found = engine.host().check_step(&fine);
        assert_eq!(found.as_ref().map(String::as_str), Ok("s"), "{found:?}");
    }
}

#[test]
fn the_error_of_a_step_definition_is_one_line_with_its_key() {
    let fixture = FlowFixture::new();
    let engine = fixture.engine();
    for (definition, named) in [
        (with("http.timeout", json!(-1)), "timeout"),
        (with("work_config", json!({"parallelism": -1})), "parallelism"),
        (with("predicate", json!({"language": "cel", "script": "x ==="})), "script"),
    ] {
        let words = engine.host().check_step(&definition).unwrap_err();
        assert!(words.contains(named), "{words}");
        assert!(!words.contains('\n'), "{words}");
    }
}

#[test]
fn all_errors_of_a_step_definition_are_reported() {
    let fixture = FlowFixture::new();
    let engine = fixture.engine();
    let mut definition = with("work_config", json!({"backoff": -1}));
    definition["attributes"]["x"]["role"] = "perhaps".into();
    let words = engine.host().check_step(&definition).unwrap_err();
    assert!(words.contains("backoff") && words.contains("perhaps"), "{words}");
}

#[test]
fn nulls_and_an_empty_default_of_a_step_definition_are_ignored() {
    let fixture = FlowFixture::new();
    let engine = fixture.engine();
    let plain = json!({
        "id": "s", "type": "sync", "http": {"endpoint": "http://steps/s"},
        "attributes": {"x": {"role": "required"}},
    });
    let wordy = json!({
        "id": "s", "type": "sync", "flow": null, "predicate": null, "script": null, "compensate": null,
        "work_config": null, "memoizable": null,
        "http": {"endpoint": "http://steps/s", "health_check": null, "timeout": null},
        "attributes": {"x": {"role": "required", "default": "", "mapping": null}},
    });
    for step in [&plain, &wordy] {
        assert_eq!(engine.host().check_step(step), Ok("s".to_owned()));
    }
    assert_eq!(plain_definition(&wordy), plain);
}

#[test]
fn keys_of_newer_definitions_are_refused_by_name_with_those_that_are_known() {
    let fixture = FlowFixture::new();
    let engine = fixture.engine();
    let script = json!({"language": "jpath", "script": "$.x"});
    for (definition, named, known) in [
        (with("attributes.x.mapping", json!({"name": "y", "script": script})), "`script`", "name"),
        (with("compensate", json!({"endpoint": "http://steps/undo"})), "`compensate`", "predicate"),
        (with("work_config", json!({"init_backoff": 5})), "`init_backoff`", "max_backoff"),
        (with("http.compensate", json!({})), "`compensate`", "endpoint"),
        (with("attributes.x.timeout", json!(5)), "`timeout`", "timeout"),
        (with("colour", json!("blue")), "`colour`", "attributes"),
    ] {
        let words = engine.host().check_step(&definition).expect_err(named);
        assert!(words.contains(named) && words.contains(known), "{words}");
    }
}

#[test]
fn a_registered_step_that_this_release_would_refuse_still_runs() {
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({}))]);
    let attributes = json!({"x": {"role": "required", "type": "string", "default": "\"1\"", "since": 2020}});
    let old = step("s", &server.url("/s"), &attributes, &Value::Null);
    let fixture = FlowFixture::new();
    fixture.register(&old);
    let engine = fixture.engine();
    assert!(engine.host().check_step(&old).is_err());
    engine.start(&wanted("a", "s", &json!({"x": "y"})));
    engine.completes("a");
}

#[test]
fn the_address_with_its_inputs_must_be_allowed() {
    let server = ScriptedServer::start();
    for path in ["/ok/1", "/ok/2"] {
        server.answers(path, &[Reply::outputs(&json!({}))]);
    }
    let id = json!({"dir": {"role": "required"}, "id": {"role": "required"}});
    let step = step("s", &format!("{}/{{dir}}/{{id}}", server.origin()), &id, &Value::Null);
    let allowed: &'static str = Box::leak(format!("{}/ok/*", server.origin()).into_boxed_str());
    let fixture = FlowFixture::of(std::slice::from_ref(&step));
    let engine = fixture
        .engine_with(HostOptions { endpoints: Box::leak(Box::new([allowed])), ..HostOptions::default() });
    // What it will call is not known when it is registered; where is.
    engine.host().check_step(&step).unwrap();
    let mut elsewhere = step;
    elsewhere["http"]["endpoint"] = "http://elsewhere/{dir}/{id}".into();
    assert!(engine.host().check_step(&elsewhere).is_err());
    for (flow, dir, id, goes) in
        [("a", "ok", "1", true), ("b", "no", "1", false), ("c", "ok", "..", false), ("d", "ok", "2", true)]
    {
        engine.start(&wanted(flow, "s", &json!({"dir": dir, "id": id})));
        let expected = if goes { JobStage::Completed } else { JobStage::Failed };
        assert_eq!(engine.left(flow), Ok(expected), "{flow}");
    }
    let paths: Vec<String> = server.all().iter().map(|sent| sent.target.clone()).collect();
    assert_eq!(paths, ["/ok/1", "/ok/2"]);
}

#[test]
fn a_step_with_an_endpoint_that_is_not_allowed_is_refused() {
    let fixture = FlowFixture::new();
    let engine = fixture.engine_with(HostOptions {
        endpoints: &["http://127.0.0.1:*", "https://*.example.com/hooks/*"],
        ..HostOptions::default()
    });
    for address in ["http://elsewhere/s", "https://a.example.com/other"] {
        let found = engine.host().check_step(&with("http.endpoint", address.into()));
        let words = found.unwrap_err();
        assert!(words.contains(address), "{words}");
        let mut checked = with("http.endpoint", "http://127.0.0.1:1/s".into());
        checked["http"]["health_check"] = address.into();
        let words = engine.host().check_step(&checked).unwrap_err();
        assert!(words.contains(address), "{words}");
    }
    let hidden = with("http.endpoint", "http://127.0.0.1@evil/".into());
    let words = engine.host().check_step(&hidden).unwrap_err();
    assert!(words.contains("user name or password"), "{words}");
    for address in ["http://127.0.0.1:7/s", "https://a.example.com/hooks/s"] {
        engine.host().check_step(&with("http.endpoint", address.into())).unwrap();
    }
}

#[test]
fn a_stored_flow_does_not_call_an_endpoint_that_is_no_longer_allowed() {
    let server = ScriptedServer::start().on("/again", &[Reply::status(503)]);
    let fixture = FlowFixture::of(&[step(
        "again",
        &server.url("/again"),
        &json!({}),
        &json!({"max_retries": 5, "backoff": 1500}),
    )]);
    let engine = fixture.engine();
    engine.start(&wanted("waiting", "again", &json!({})));
    server.wait_for("/again", 1);
    FlowFixture::eventually("a retry", || fixture.all("waiting", "retry_scheduled").pop());
    engine.suspend();
    drop(engine);
    fixture.deposit("fresh", &wanted("fresh", "again", &json!({})), &[]);
    let engine =
        fixture.engine_with(HostOptions { endpoints: &["http://elsewhere"], ..HostOptions::default() });
    let found = engine.host().recover().unwrap();
    assert_eq!(found.resumed, ["fresh", "waiting"]);
    for flow in ["fresh", "waiting"] {
        assert_eq!(engine.left(flow), Ok(JobStage::Failed), "{flow}");
        let failed = fixture.events(flow).pop().unwrap();
        let error = failed["error"].as_str().unwrap();
        assert!(error.contains("is not among the allowed endpoints"), "{error}");
    }
    assert_eq!(server.all().len(), 1);
}
