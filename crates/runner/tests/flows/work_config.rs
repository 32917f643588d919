//! The rules of `work_config`, against the retries that were recorded.

use std::time::Duration;

use serde_json::{Value, json};
use undaunted_engine::job::JobStage;
use undaunted_engine::workflow::Operator;
use undaunted_policy::Attempts;
use undaunted_policy::spelling::{BackoffType, WorkDefaults};

use crate::engine::HostOptions;
use crate::fixture::{FlowFixture, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

fn fixture(server: &ScriptedServer, work: &Value) -> FlowFixture {
    FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), work)])
}

/// The delays that were recorded, in milliseconds.
fn delays(fixture: &FlowFixture) -> Vec<u64> {
    let scheduled = fixture.all("a", "retry_scheduled");
    let delays = scheduled.iter().map(|event| event["delay_ms"].as_u64());
    delays.map(Option::unwrap).collect()
}

/// An operator with these defaults.
fn operator(max_retries: Attempts, backoff: u64, max: u64, growth: BackoffType) -> Operator {
    Operator {
        work: WorkDefaults {
            max_retries,
            backoff: Duration::from_millis(backoff),
            max_backoff: Duration::from_millis(max),
            backoff_type: growth,
        },
        ..Operator::default()
    }
}

#[test]
fn recorded_delays_are_those_of_the_documentation() {
    let server = ScriptedServer::start().on("/s", &[Reply::status(500)]);
    let linear = operator(Attempts::AtMost(4), 2, 5, BackoffType::Linear);
    let fixed = operator(Attempts::AtMost(2), 3, 9, BackoffType::Fixed);
    let usual = Operator::default();
    let cases: [(Operator, Value, &[u64]); 15] = [
        (usual, json!({"max_retries": 4, "backoff": 3, "backoff_type": "fixed"}), &[3, 3, 3, 3]),
        (usual, json!({"max_retries": 4, "backoff": 3, "backoff_type": "linear"}), &[3, 6, 9, 12]),
        (usual, json!({"max_retries": 4, "backoff": 3, "backoff_type": "exponential"}), &[3, 6, 12, 24]),
        (
            usual,
            json!({"max_retries": 4, "backoff": 3, "max_backoff": 7, "backoff_type": "linear"}),
            &[3, 6, 7, 7],
        ),
        (
            usual,
            json!({"max_retries": 4, "backoff": 3, "max_backoff": 10, "backoff_type": "exponential"}),
            &[3, 6, 10, 10],
        ),
        (
            usual,
            json!({"max_retries": 2, "backoff": 3, "max_backoff": 3, "backoff_type": "exponential"}),
            &[3, 3],
        ),
        // No retries, in three spellings.
        (usual, json!({"max_retries": 0, "backoff": 3}), &[]),
        (usual, json!({"backoff": 3}), &[]),
        (linear, json!({"parallelism": 2}), &[]),
        // What is left out is the operator's; without any `work_config` everything is.
        (linear, Value::Null, &[2, 4, 5, 5]),
        (fixed, Value::Null, &[3, 3]),
        (operator(Attempts::AtMost(0), 1, 1, BackoffType::Fixed), Value::Null, &[]),
        (linear, json!({"max_retries": 3, "backoff": 4}), &[4, 5, 5]),
        (linear, json!({"max_retries": 2, "max_backoff": 3}), &[2, 3]),
        (linear, json!({"max_retries": 3, "backoff": 1, "backoff_type": "fixed"}), &[1, 1, 1]),
    ];
    for (operator, work, expected) in cases {
        let calls = server.all().len();
        let fixture = fixture(&server, &work);
        let engine = fixture.engine_with(HostOptions { operator, ..HostOptions::default() });
        engine.start(&wanted("a", "s", &json!({})));
        assert_eq!(engine.left("a"), Ok(JobStage::Failed));
        assert_eq!(delays(&fixture), expected, "{work}");
        assert_eq!(server.all().len() - calls, expected.len() + 1, "{work}");
    }
}

#[test]
fn the_documented_defaults_apply() {
    let server = ScriptedServer::start().on("/s", &[Reply::status(500)]);
    for (work, first, allowed) in [
        (Value::Null, 1000, json!(10)),
        (json!({"max_retries": 7}), 1000, json!(7)),
        // The cap is 60 s if none is given, and never zero.
        (json!({"max_retries": 2, "backoff": 900_000}), 60_000, json!(2)),
        (json!({"max_retries": 2, "backoff": 50_000, "max_backoff": 0}), 50_000, json!(2)),
        (json!({"max_retries": -1, "backoff": 5000}), 5000, Value::Null),
    ] {
        let fixture = fixture(&server, &work);
        let engine = fixture.engine();
        engine.start(&wanted("a", "s", &json!({})));
        let retry = FlowFixture::eventually("a retry", || fixture.all("a", "retry_scheduled").pop());
        assert_eq!(retry["delay_ms"], first, "{work}");
        assert_eq!(retry["retry"], 1);
        assert_eq!(retry["attempt"], 1);
        assert_eq!(retry["retries_allowed"], allowed, "{work}: {retry}");
        assert!(retry["due_at"].is_string(), "{retry}");
    }
}

#[test]
fn without_a_limit_a_step_is_retried_until_it_succeeds() {
    let mut replies = vec![Reply::status(503); 25];
    replies.push(Reply::outputs(&json!({})));
    let server = ScriptedServer::start().on("/s", &replies);
    let fixture = fixture(&server, &json!({"max_retries": -1, "backoff": 1, "backoff_type": "fixed"}));
    let engine = fixture.engine();
    engine.start(&wanted("a", "s", &json!({})));
    engine.completes("a");
    assert_eq!(server.all().len(), 26);
    assert_eq!(delays(&fixture), [1; 25]);
}
