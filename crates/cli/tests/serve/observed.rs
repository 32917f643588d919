//! What can be observed from outside: metrics, logs, and whether steps are there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::history::{assert_contains, assert_fields, one, text};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, one_step, provider, retries, step};

/// The samples of the exposition format, and the kinds of metrics: whatever is no line of it is a failure.
fn samples(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let (mut samples, mut kinds) = (BTreeMap::new(), BTreeMap::new());
    let mut ended = false;
    for line in text.lines() {
        assert!(!ended, "nothing follows the end: {line}");
        if line == "# EOF" {
            ended = true;
        } else if let Some(suffix) = line.strip_prefix("# TYPE ") {
            let (name, kind) = suffix.split_once(' ').unwrap();
            assert_eq!(kinds.insert(name.to_owned(), kind.to_owned()), None, "{line}");
        } else if line.starts_with("# HELP ") || line.starts_with("# UNIT ") {
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == ':'), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let family = kinds.keys().any(|kind| {
                let suffix = name.strip_prefix(kind.as_str());
                suffix.is_some_and(|suffix| ["", "_total", "_bucket", "_sum", "_count"].contains(&suffix))
            });
            assert!(family, "{line} has no type before it");
            assert_eq!(samples.insert(series.to_owned(), value.to_owned()), None, "{line}");
        }
    }
    assert!(ended, "{text}");
    (samples, kinds)
}

fn metrics(served: &RunningServer) -> BTreeMap<String, String> {
    let answer = served.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().contains("text"));
    samples(&answer.text()).0
}

#[test]
fn metrics_have_the_documented_names() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .on("/a", &[Reply::status(503)])
        .on("/ok", &[Reply::status(500), Reply::x(1)])
        .by("/each", |request| {
            let n = request.argument("n").as_u64().unwrap();
            if n == 3 { Reply::refusal("not three") } else { Reply::outputs(&json!({"m": n})) }
        });
    let served = RunningServer::on(&sandbox);
    served.register(&provider(&handlers, "a", &retries(9)));
    served.register(&provider(&handlers, "ok", &retries(9)));
    let each = json!({"n": {"role": "required", "for_each": true}, "m": {"role": "output"}});
    served.register(&step(&handlers, "each", &each, &json!({})));
    served.post("/engine/flow", &json!({"id": "poor", "goals": ["a"], "retry_budget": 1})).is(201);
    served.wait_for_end("poor", "failed");
    served.run_flow("fine", "ok", &json!({}), "completed");
    let best = json!({"id": "best", "goals": ["each"], "init": {"n": [1, 2, 3, 4]}, "best_effort": true, "best_effort_min_dcs": 4});
    served.post("/engine/flow", &best).is(201);
    served.wait_for_flow("best", "the end", |flow| flow["status"] != "active");
    for id in ["poor", "fine", "best"] {
        served.wait_for_deactivation(id);
    }
    let series_values = metrics(&served);
    let (_, kinds) = samples(&served.get("/metrics").text());
    let of = |series: &str| {
        let value = series_values.get(series).map(String::as_str);
        value.unwrap_or_else(|| panic!("{series}: {series_values:#?}"))
    };
    assert_eq!(of(r#"retry_budget_consumed_total{job_id="poor"}"#), "1");
    assert_eq!(of(r#"retry_budget_exhausted_total{job_id="poor"}"#), "1");
    assert_eq!(of(r#"best_effort_completion_ratio{job_id="best"}"#), "0.75");
    let completions: Vec<&String> = series_values
        .iter()
        .filter(|(name, _)| name.starts_with("best_effort_completions_total{reason="))
        .map(|(_, value)| value)
        .collect();
    assert_eq!(completions, ["1"]);
    assert_eq!(of(r#"undaunted_flows{status="active"}"#), "0");
    assert_eq!(of(r#"undaunted_attempts_total{outcome="succeeded"}"#), "4");
    assert_eq!(of("undaunted_retries_total"), "2");
    assert_eq!(of("undaunted_retry_delay_seconds_count"), "2");
    assert_eq!(of(r#"undaunted_items{state="running"}"#), "0");
    assert_fields!(kinds, {"retry_budget_consumed": "counter", "undaunted_retry_delay_seconds": "histogram"});
}

#[test]
fn the_series_of_a_flow_are_removed_when_it_is_archived() {
    let (sandbox, _handlers, served) = one_step(&[Reply::status(503)], &retries(9));
    let of = |id: &str| {
        let series_values = metrics(&served);
        let label = format!("job_id=\"{id}\"");
        series_values.keys().filter(|name| name.contains(&label)).count()
    };
    for id in ["poor", "other"] {
        served.start_flow_with(id, &json!({"goals": ["a"], "retry_budget": 1}));
        served.wait_for_end(id, "failed");
        served.wait_for_deactivation(id);
        assert_eq!(of(id), 2);
    }
    sandbox.call(&["archive", "poor"]).exits(0);
    served.get("/engine/flow/poor").refused(404);
    Sandbox::wait_until("series that have ended", || of("poor") == 0);
    assert_eq!(of("other"), 2);
    sandbox.call(&["rm", "other", "--yes"]).exits(0);
    Sandbox::wait_until("series that have ended", || of("other") == 0);
}

#[test]
fn the_use_of_a_pool_is_still_counted_after_a_restart() {
    let ok = Reply::x(1).gated();
    let (sandbox, handlers, served) = one_step(&[Reply::status(503), Reply::status(503), ok], &retries(9));
    served.start_flow_with("f", &json!({"goals": ["a"], "retry_budget": 0, "retry_budget_per_workflow": 5}));
    handlers.wait_for("/a", 3);
    served.kill();
    let served = RunningServer::on(&sandbox);
    handlers.wait_for("/a", 4);
    // Two retries, and one after the interruption.
    Sandbox::eventually("the series of the pool", || {
        let series_values = metrics(&served);
        let consumed = series_values.get(r#"retry_budget_consumed_total{job_id="f"}"#);
        consumed.filter(|it| *it == "3").map(|_| ())
    });
    let series_values = metrics(&served);
    assert_eq!(series_values[r#"undaunted_items{state="running"}"#], "1");
    assert_eq!(series_values[r#"undaunted_flows{status="active"}"#], "1");
    let budget = sandbox.json(&["budget", "show", "f", "--json"]);
    assert_fields!(budget, {"consumed": 3, "total_budget": 20});
    handlers.open("/a");
    served.wait_for_end("f", "completed");
}

#[test]
fn the_series_of_an_ended_flow_are_there_after_a_restart_until_it_is_archived() {
    let (sandbox, _handlers, served) = one_step(&[Reply::status(503)], &retries(9));
    served.start_flow_with("poor", &json!({"goals": ["a"], "retry_budget": 1}));
    served.wait_for_end("poor", "failed");
    served.wait_for_deactivation("poor");
    served.stop();
    let served = RunningServer::on(&sandbox);
    let series = ["retry_budget_consumed_total", "retry_budget_exhausted_total"];
    let series = series.map(|name| format!("{name}{{job_id=\"poor\"}}"));
    let found = metrics(&served);
    for name in &series {
        assert_eq!(found[name], "1", "{name}");
    }
    sandbox.call(&["archive", "poor"]).exits(0);
    Sandbox::wait_until("series that have ended", || {
        let found = metrics(&served);
        series.iter().all(|name| !found.contains_key(name))
    });
}

/// What another process of the store runs is seen by every server, and once.
#[test]
fn jobs_of_other_processes_are_counted_and_logged_within_seconds() {
    let sandbox = Sandbox::of(
        "name: poor\nretry_budget: 1\ncommands:\n  - shell: exit 3\n    id: broken\n    retry_config: {attempts: 9, initial_delay: 10ms}\n",
    );
    sandbox.run().exits(1);
    let earlier = sandbox.job();
    // What was recorded before the start is not logged again.
    let served = RunningServer::on_with(&sandbox, &["--log-level", "debug"]);
    sandbox.run().exits(1);
    let job = sandbox.jobs().into_iter().find(|job| *job != earlier).unwrap();
    sandbox.call(&["exec", "--", "true"]).exits(0);
    sandbox.call(&["exec", "--attempts", "1", "--initial-delay", "10ms", "--", "false"]).exits(1);
    let log = Sandbox::eventually("records of all jobs", || {
        let log = served.log();
        let ended = log.iter().filter(|line| ["job_failed", "job_completed"].contains(&kind_of(line)));
        (ended.count() >= 3).then_some(log)
    });
    assert!(log.iter().all(|line| line["job"] != *earlier), "{log:#?}");
    let exhausted: Vec<&Value> = log.iter().filter(|line| line["event"] == "RetryBudgetExhausted").collect();
    assert_eq!(exhausted.len(), 1, "{log:#?}");
    assert_fields!(exhausted[0], {"job": job.as_str(), "item": "broken", "consumed": 1, "total": 1});
    let found = metrics(&served);
    for job in [&job, &earlier] {
        assert_eq!(found[&format!("retry_budget_exhausted_total{{job_id=\"{job}\"}}")], "1");
    }
    assert_eq!(found[r#"undaunted_attempts_total{outcome="transient"}"#], "4");
    assert_eq!(found[r#"undaunted_attempts_total{outcome="succeeded"}"#], "1");
    let other = RunningServer::on(&sandbox);
    sandbox.call(&["exec", "--", "true"]).exits(0);
    assert_eq!(metrics(&served)[r#"undaunted_attempts_total{outcome="succeeded"}"#], "2");
    assert_eq!(metrics(&other)[r#"undaunted_attempts_total{outcome="succeeded"}"#], "1");
}

#[test]
fn a_flow_that_moves_to_a_server_is_counted_once() {
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503), Reply::x(1).gated()]);
    let endpoint = handlers.url("/a");
    let sandbox = Sandbox::of(&format!(
        "mode: flow\ngoals: [a]\nretry_budget: 5\nsteps:\n  - {{id: a, type: sync, http: {{endpoint: '{endpoint}'}}, \
         attributes: {{x: {{role: output}}}}, work_config: {{max_retries: 5, backoff: 1}}}}\n"
    ));
    let served = RunningServer::on(&sandbox);
    let running = sandbox.start_run();
    handlers.wait_for("/a", 2);
    let job = sandbox.job();
    let consumed = format!("retry_budget_consumed_total{{job_id=\"{job}\"}}");
    let transient = r#"undaunted_attempts_total{outcome="transient"}"#;
    Sandbox::wait_until("the flow of another process", || {
        let found = metrics(&served);
        found.get(&consumed).is_some_and(|it| it == "1") && found.get(transient).is_some_and(|it| it == "1")
    });
    running.kill();
    handlers.open("/a");
    // The flow is not in the catalog, so a server takes it over when it starts.
    served.stop();
    let served = RunningServer::on(&sandbox);
    served.wait_for_end(&job, "completed");
    let found = metrics(&served);
    // The first attempt came before the server; the interrupted one is recorded by it.
    assert_eq!(found[&consumed], "2");
    assert_eq!(found[r#"undaunted_attempts_total{outcome="interrupted"}"#], "1");
    assert_eq!(found[r#"undaunted_attempts_total{outcome="succeeded"}"#], "1");
    assert!(!found.contains_key(transient));
    let log = served.log();
    let ended = log.iter().filter(|line| line["event"] == "job_completed").count();
    assert_eq!(ended, 1, "{log:#?}");
}

fn kind_of(line: &Value) -> &str {
    line["event"].as_str().unwrap_or_default()
}

#[test]
fn logs_are_json_lines_with_the_records_of_the_semantics() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503)]);
    let served = RunningServer::on_with(&sandbox, &["--log-level", "debug"]);
    served.register(&provider(&handlers, "a", &retries(9)));
    served
        .post(
            "/engine/flow",
            &json!({"id": "f", "goals": ["a"], "retry_budget": 1, "init": {"note": "a private note"}}),
        )
        .is(201);
    served.wait_for_end("f", "failed");
    let log = Sandbox::eventually("the end of the flow", || {
        let log = served.log();
        log.iter().any(|line| line["event"] == "job_failed").then_some(log)
    });
    for line in &log {
        assert!(line["at"].as_str().unwrap().ends_with('Z'), "{line}");
        assert!(["error", "warn", "info", "debug"].iter().any(|level| line["level"] == *level), "{line}");
        assert!(line["event"].is_string() != line["message"].is_string(), "{line}");
    }
    let of = |name: &str| -> Vec<&Value> { log.iter().filter(|line| line["event"] == name).collect() };
    let exhausted = of("RetryBudgetExhausted");
    assert_eq!(exhausted.len(), 1, "{log:#?}");
    let exhausted = exhausted[0];
    assert_fields!(exhausted, {
        "job": "f", "consumed": 1, "total": 1, "level": "warn", "reason": "job_budget_exhausted (1/1)",
    });
    let correlation = &exhausted["correlation_id"];
    for name in ["attempt_started", "attempt_failed", "retry_scheduled", "item_dead_lettered"] {
        assert!(!of(name).is_empty(), "{name}");
        assert!(of(name).iter().all(|line| line["correlation_id"] == *correlation), "{name}");
    }
    assert_eq!(handlers.all()[0].header("Undaunted-Correlation-Id"), correlation.as_str());
    served.stop();

    // At the usual level attempts are not worth a line.
    let served = RunningServer::on(&sandbox);
    served.run_flow("g", "a", &json!({}), "failed");
    let log = Sandbox::eventually("the end of the flow", || {
        let log = served.log();
        log.iter().any(|line| line["event"] == "job_failed" && line["job"] == "g").then_some(log)
    });
    assert!(log.iter().all(|line| line["level"] != "debug"), "{log:#?}");
    assert!(log.iter().any(|line| line["event"] == "job_submitted" && line["job"] == "g"));
}

#[test]
fn the_health_of_steps_is_checked_and_recorded_when_it_changes() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/health", &[Reply::status(200)]);
    let served = RunningServer::on(&sandbox);
    let mut watched = provider(&handlers, "watched", &json!({}));
    watched["http"]["health_check"] = json!(handlers.url("/health"));
    served.register(&watched);
    served.register(&provider(&handlers, "silent", &json!({})));
    assert_eq!(served.get("/engine/health/silent").is(200), json!({"status": "unknown"}));
    served.get("/engine/health/unknown").refused(404);
    served.stop();
    // A server that starts checks at once.
    for (status, health) in [(200, "healthy"), (503, "unhealthy"), (200, "healthy")] {
        handlers.answers("/health", &[Reply::status(status)]);
        let served = RunningServer::on(&sandbox);
        let answer = Sandbox::eventually(health, || {
            let answer = served.get("/engine/health/watched").is(200);
            (answer["status"] == health).then_some(answer)
        });
        if health == "unhealthy" {
            assert_contains(&answer["error"], "503");
        }
        let every = served.get("/engine/health").is(200);
        assert_eq!(every["count"], 2);
        assert_eq!(every["health"]["watched"], answer);
        assert_eq!(every["health"]["silent"], json!({"status": "unknown"}));
        assert_eq!(served.get("/engine").is(200)["health"]["watched"], answer);
        served.stop();
    }
    // A step that is not well is called all the same.
    assert_eq!(handlers.requests("/health").iter().filter(|call| call.method != "GET").count(), 0);
}

#[test]
fn the_engine_state_lists_every_flow() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1)]).on("/held", &[Reply::x(1).gated()]);
    let served = RunningServer::on(&sandbox);
    for id in ["a", "held"] {
        served.register(&provider(&handlers, id, &json!({})));
    }
    let health = served.get("/health").is(200);
    assert_eq!(health["status"], "healthy");
    served.run_flow("over", "a", &json!({}), "completed");
    served.wait_for_deactivation("over");
    served.start_flow("held", "held", &json!({}));
    let engine = served.get("/engine").is(200);
    let names = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(names(&engine["active"]), ["held"]);
    assert_eq!(engine["deactivated"].as_array().unwrap().len(), 1);
    assert_eq!(engine["archiving"], json!({}));
    assert_eq!(names(&engine["steps"]), ["a", "held"]);
    assert_eq!(names(&engine["flow_digests"]), ["held", "over"]);
    let events = sandbox.events_of("over");
    let digest = &engine["flow_digests"]["over"];
    assert_eq!(text(&digest["created_at"]), text(&one(&events, "job_submitted")["at"]));
    assert_eq!(text(&digest["completed_at"]), text(&one(&events, "job_completed")["at"]));
    assert_eq!(digest["status"], "completed");
    assert_eq!(engine["attributes"]["x"]["providers"], json!(["a", "held"]));
}
