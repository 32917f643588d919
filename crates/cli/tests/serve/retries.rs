//! `work_config` over the API: what is retried, how often, and after which delays.

use serde_json::{Value, json};

use crate::history::{all, delays, outcomes};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, only_item, provider, retries, step};

#[test]
fn transport_and_5xx_failures_are_retried_and_everything_else_is_final() {
    let sandbox = Sandbox::new();
    let ok = Reply::x(1);
    let transient = [
        ("close", Reply::Close),
        ("half-head", Reply::CloseInHeaders),
        ("no-body", Reply::CloseAfterHeaders),
        ("stalled-head", Reply::StallInHeaders),
        ("stalled-body", Reply::StallInBody),
        ("garbage", Reply::Garbage),
        ("truncated", Reply::Truncated),
        ("s500", Reply::status(500)),
        ("s502", Reply::status(502)),
        ("s503", Reply::status(503)),
        ("s504", Reply::status(504)),
        ("s599", Reply::status(599)),
    ];
    let permanent = [
        ("s400", Reply::status(400)),
        ("s401", Reply::status(401)),
        ("s404", Reply::status(404)),
        ("s409", Reply::status(409)),
        ("s429", Reply::status(429)),
        ("s302", Reply::status(302).header("Location", "/elsewhere")),
        ("refusal", Reply::refusal("no")),
        ("no-json", Reply::text(200, "fine")),
        ("no-success", Reply::text(200, "{}")),
    ];
    let mut handlers = ScriptedServer::start();
    for (name, reply) in &transient {
        handlers = handlers.on(&format!("/{name}"), &[reply.clone(), ok.clone()]);
    }
    for (name, reply) in &permanent {
        handlers = handlers.on(&format!("/{name}"), &[reply.clone(), ok.clone()]);
    }
    let served = RunningServer::on(&sandbox);
    for (name, _) in transient.iter().chain(&permanent) {
        let mut step = provider(&handlers, name, &retries(2));
        if name.starts_with("stalled") {
            step["http"]["timeout"] = json!(200);
        }
        served.register(&step);
        served.start_flow(name, name, &json!({}));
    }
    for (name, _) in &transient {
        let flow = served.wait_for_end(name, "completed");
        assert_eq!(only_item(&flow, name).unwrap()["retry_count"], 1, "{name}");
        let calls = handlers.requests(&format!("/{name}"));
        assert_eq!(calls.len(), 2, "{name}");
        assert_eq!(calls[0].token(), calls[1].token());
    }
    for (name, _) in &permanent {
        let flow = served.wait_for_end(name, "failed");
        assert_eq!(only_item(&flow, name).unwrap()["retry_count"], 0, "{name}");
        assert_eq!(handlers.requests(&format!("/{name}")).len(), 1, "{name}");
    }
    assert!(handlers.requests("/elsewhere").is_empty());
    // An endpoint where no server listens.
    let mut gone = provider(&handlers, "gone", &retries(1));
    gone["http"]["endpoint"] = json!("http://127.0.0.1:1/gone");
    served.register(&gone);
    served.run_flow("gone", "gone", &json!({}), "failed");
    assert_eq!(outcomes(&sandbox.events_of("gone")).len(), 2);
}

#[test]
fn work_config_says_how_often_and_after_how_long() {
    let sandbox = Sandbox::new();
    let mut handlers = ScriptedServer::start();
    let table: [(&str, Value, &[u64]); 8] = [
        ("none", retries(0), &[]),
        ("absent", json!({"backoff": 1}), &[]),
        ("fixed", json!({"max_retries": 3, "backoff": 7, "backoff_type": "fixed"}), &[7, 7, 7]),
        ("linear", json!({"max_retries": 4, "backoff": 5, "backoff_type": "linear"}), &[5, 10, 15, 20]),
        (
            "exponential",
            json!({"max_retries": 4, "backoff": 3, "backoff_type": "exponential"}),
            &[3, 6, 12, 24],
        ),
        (
            "capped",
            json!({"max_retries": 5, "backoff": 4, "max_backoff": 10, "backoff_type": "exponential"}),
            &[4, 8, 10, 10, 10],
        ),
        (
            "capped-linear",
            json!({"max_retries": 3, "backoff": 4, "max_backoff": 10, "backoff_type": "linear"}),
            &[4, 8, 10],
        ),
        (
            "engine-cap",
            json!({"max_retries": 3, "backoff": 20, "backoff_type": "exponential"}),
            &[20, 40, 50],
        ),
    ];
    for (name, ..) in &table {
        handlers = handlers.on(&format!("/{name}"), &[Reply::status(503)]);
    }
    let mut often = vec![Reply::status(503); 12];
    often.push(Reply::x(1));
    handlers = handlers.on("/unlimited", &often).on("/defaults", &[Reply::status(503)]);
    let variables = [
        ("RETRY_MAX_RETRIES", "4"),
        ("RETRY_BACKOFF", "11"),
        ("RETRY_MAX_BACKOFF", "50"),
        ("RETRY_BACKOFF_TYPE", "linear"),
    ];
    let served = RunningServer::with(&sandbox, &["--listen", "127.0.0.1:0"], &variables);
    for (name, work, _) in &table {
        served.register(&provider(&handlers, name, work));
        served.start_flow(name, name, &json!({}));
    }
    served.register(&provider(
        &handlers,
        "unlimited",
        &json!({"max_retries": -1, "backoff": 1, "backoff_type": "fixed"}),
    ));
    served.start_flow("unlimited", "unlimited", &json!({}));
    served.register(&step(&handlers, "defaults", &json!({"x": {"role": "output"}}), &json!({})));
    served.start_flow("defaults", "defaults", &json!({}));
    let expected = table.iter().map(|(name, _, delays)| (*name, *delays, "failed"));
    let more: [(&str, &[u64], &str); 2] =
        [("unlimited", &[1; 12], "completed"), ("defaults", &[11, 22, 33, 44], "failed")];
    for (name, expected, status) in expected.chain(more) {
        let flow = served.wait_for_end(name, status);
        let events = sandbox.lawful_events_of(name);
        assert_eq!(delays(&events), expected, "{name}");
        let calls = handlers.requests(&format!("/{name}"));
        assert_eq!(calls.len(), expected.len() + 1, "{name}");
        assert!(calls.iter().all(|call| call.token() == calls[0].token()));
        assert_eq!(only_item(&flow, name).unwrap()["retry_count"], expected.len(), "{name}");
    }
}

#[test]
fn without_settings_the_defaults_of_the_document_hold() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503)]);
    let served = RunningServer::on(&sandbox);
    served.register(&step(&handlers, "a", &json!({"x": {"role": "output"}}), &json!({})));
    served.start_flow("f", "a", &json!({}));
    served.wait_for_first_retry("f", "a");
    let events = sandbox.events_of("f");
    let scheduled = all(&events, "retry_scheduled");
    assert_eq!(scheduled[0]["delay_ms"], 1000);
    let explanation = sandbox.call(&["explain", "f"]).exits(0);
    assert!(explanation.out.contains("retry 1 of 10"), "{}", explanation.out);
}

#[test]
fn a_malformed_variable_stops_the_start_by_its_name() {
    let sandbox = Sandbox::new();
    for (name, wrong) in [
        ("RETRY_MAX_RETRIES", "many"),
        ("RETRY_MAX_RETRIES", "-2"),
        ("RETRY_BACKOFF", "1s"),
        ("RETRY_BACKOFF", "-1"),
        ("RETRY_MAX_BACKOFF", ""),
        ("RETRY_BACKOFF_TYPE", "cubic"),
        ("RETRY_BUDGET_DEFAULT", "x"),
        ("RETRY_BUDGET_MAX", "-1"),
        ("BEST_EFFORT_DEFAULT_DEADLINE_SECONDS", "soon"),
        ("BEST_EFFORT_LATE_RESULT_POLICY", "maybe"),
        ("WEBHOOK_BASE_URL", "not an address"),
    ] {
        let ended = RunningServer::refused(&sandbox, &["--listen", "127.0.0.1:0"], &[(name, wrong)]);
        assert!(ended.err.contains(name), "{name}: {}", ended.err);
        assert_eq!(ended.out, "", "{name}");
    }
    for wrong in [
        ["--listen", "nowhere"],
        ["--allow-endpoint", ""],
        ["--log-level", "loud"],
        ["--public-url", "ftp://x"],
        ["--token-file", "missing"],
    ] {
        RunningServer::refused(&sandbox, &wrong, &[]);
    }
}
