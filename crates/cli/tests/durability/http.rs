//! HTTP requests as commands: how each answer is classified, and which requests are retried.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::history::{
    all, assert_contains, assert_fields, assert_lawful, count, millis, one, outcomes, text,
};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;

/// A request with two retries.
pub(crate) fn one_request(http: &str, more: &str) -> Sandbox {
    Sandbox::of(&format!(
        "
- id: call
  http: {{{http}}}
  retry_config: {{attempts: 2, backoff: fixed, initial_delay: 1ms}}
{more}"
    ))
}

/// A request to `/` with this `retry_config`.
pub(crate) fn retried_request(server: &ScriptedServer, retry_config: &str) -> Sandbox {
    let url = server.url("/");
    Sandbox::of(&format!("- {{id: call, http: {{url: '{url}'}}, retry_config: {{{retry_config}}}}}\n"))
}

/// A request with two retries for each of these items, one after the other.
fn request_each(server: &ScriptedServer, items: &[&str], more: &str) -> Sandbox {
    Sandbox::of(&format!(
        "
mode: mapreduce
map:
  input: {{shell: 'printf \"%s\\n\" {}'}}
  max_parallel: 1
  agent_template:
    - id: call
      http: {{url: '{}/${{item}}'}}
      retry_config: {{attempts: 2, backoff: fixed, initial_delay: 1ms}}
{more}",
        items.join(" "),
        server.origin()
    ))
}

/// The attempts of each item: `success`, or cause and class of the failure.
fn by_item(events: &[Value]) -> BTreeMap<String, Vec<String>> {
    let mut by_item: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events {
        let word = match text(&event["type"]).as_str() {
            "attempt_succeeded" => "success".to_owned(),
            "attempt_failed" => format!("{} {}", text(&event["cause"]), text(&event["class"])),
            _ => continue,
        };
        by_item.entry(text(&event["item"])).or_default().push(word);
    }
    by_item
}

/// Asserts that the server received exactly one request for each attempt.
pub(crate) fn assert_one_request_per_attempt(server: &ScriptedServer, events: &[Value]) {
    let started = count(events, "attempt_started");
    assert_eq!(server.all().len(), started, "{events:#?}");
}

#[test]
fn every_status_has_its_class_and_only_the_transient_are_sent_again() {
    let statuses = [
        200, 201, 202, 204, 299, 300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 408, 409, 410, 418,
        422, 425, 429, 451, 499, 500, 501, 502, 503, 504, 511, 599,
    ];
    let names = statuses.map(|status| status.to_string());
    let mut server = ScriptedServer::start();
    for status in statuses {
        let reply = Reply::status(status).header("Location", "/elsewhere");
        server = server.on(&format!("/{status}"), &[reply]);
    }
    let sandbox = request_each(&server, &names.each_ref().map(String::as_str), "");
    sandbox.run().exits(4);
    let events = sandbox.lawful_events();
    assert_one_request_per_attempt(&server, &events);
    let by_item = by_item(&events);
    for status in statuses {
        let expected: &[&str] = match status {
            200..300 => &["success"],
            500.. => &["status transient"; 3],
            _ => &["status permanent"],
        };
        assert_eq!(by_item[&status.to_string()], expected, "{status}");
        assert_eq!(server.requests(&format!("/{status}")).len(), expected.len(), "{status}");
    }
    // No redirect is followed.
    assert!(server.requests("/elsewhere").is_empty());
    for letter in sandbox.dead_letters() {
        let transient = letter["item"].as_str().unwrap() >= "500";
        let reason = if transient { "attempts" } else { "permanent" };
        assert_eq!(letter["reason"], reason, "{letter}");
        let status = letter["item"].as_str().unwrap();
        assert_contains(&letter["error"], &format!("HTTP {status}"));
    }
}

#[test]
fn expect_says_which_statuses_are_a_success() {
    let server = ScriptedServer::start()
        .on("/404", &[Reply::status(404)])
        .on("/503", &[Reply::status(503)])
        .on("/302", &[Reply::status(302).header("Location", "/x")]);
    for (status, expect, code) in
        [(404, "[200, 404]", 0), (404, "[200-299]", 1), (503, "5xx", 0), (302, "[302]", 0)]
    {
        let url = server.url(&format!("/{status}"));
        let sandbox = one_request(&format!("url: '{url}', expect: {expect}"), "");
        sandbox.run().exits(code);
    }
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    let sandbox = one_request(&format!("url: '{}', expect: [201]", server.url("/")), "");
    let report = sandbox.run().exits(1).json();
    assert_eq!(report["reason"], "permanent");
    assert_eq!(server.all().len(), 1);
}

#[test]
fn every_broken_connection_is_a_network_failure_and_sent_again() {
    let broken = [
        ("close", Reply::Close),
        ("in-headers", Reply::CloseInHeaders),
        ("after-headers", Reply::CloseAfterHeaders),
        ("garbage", Reply::Garbage),
        ("truncated", Reply::Truncated),
        ("pieces", Reply::TruncatedPieces),
    ];
    let names = broken.each_ref().map(|(name, _)| *name);
    let mut server = ScriptedServer::start();
    for (name, reply) in broken {
        server = server.on(&format!("/{name}"), &[reply, Reply::status(200)]);
    }
    let sandbox = request_each(&server, &names, "");
    sandbox.run().exits(0);
    let events = sandbox.events();
    assert_one_request_per_attempt(&server, &events);
    for (name, outcomes) in by_item(&events) {
        assert_eq!(outcomes, ["network transient", "success"], "{name}");
    }
    for failed in all(&events, "attempt_failed") {
        let error = failed["error"].as_str().unwrap();
        assert!(!error.is_empty() && !error.contains("http://"), "{error}");
    }
}

#[test]
fn an_unreachable_server_is_a_network_failure() {
    let server = ScriptedServer::start();
    let url = server.url("/x");
    drop(server);
    let sandbox = one_request(&format!("url: '{url}'"), "");
    let report = sandbox.run().exits(1).json();
    assert_fields!(report, {"reason": "attempts", "attempts": 3});
    assert_eq!(outcomes(&sandbox.events()), ["network"; 3]);
}

#[test]
fn the_time_of_an_attempt_covers_connection_headers_and_body() {
    let server = ScriptedServer::start()
        .on("/headers", &[Reply::StallInHeaders, Reply::status(200)])
        .on("/body", &[Reply::StallInBody, Reply::status(200)])
        .on("/gated", &[Reply::status(200).gated()]);
    let more = "      timeout: 500ms\n";
    let sandbox = request_each(&server, &["headers", "body", "gated"], more);
    sandbox.run().exits(4);
    let events = sandbox.events();
    assert_one_request_per_attempt(&server, &events);
    let by_item = by_item(&events);
    assert_eq!(by_item["headers"], ["timeout transient", "success"]);
    assert_eq!(by_item["body"], ["timeout transient", "success"]);
    assert_eq!(by_item["gated"], ["timeout transient"; 3]);
    server.open("/gated");
    // A listener that never answers the TLS handshake.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let sandbox = one_request(&format!("url: 'https://{address}/'"), "  timeout: 200ms\n");
    let report = sandbox.run().exits(1).json();
    assert!(report["error"].as_str().unwrap().contains("200ms"), "{report}");
    assert_eq!(outcomes(&sandbox.events()), ["timeout"; 3]);
}

#[test]
fn an_answer_that_arrives_byte_by_byte_is_read_whole() {
    let reply = Reply::Trickled(Box::new(Reply::text(200, "slow but whole")));
    let server = ScriptedServer::start().on("/", &[reply]);
    let sandbox = one_request(&format!("url: '{}'", server.url("/")), "  capture_output: got\n");
    sandbox.run().exits(0);
    let events = sandbox.events();
    assert_eq!(one(&events, "attempt_succeeded")["output"], "slow but whole");
}

#[test]
fn retry_after_in_seconds_is_the_least_that_is_waited() {
    let server = ScriptedServer::start().on(
        "/",
        &[
            Reply::status(503).header("Retry-After", "1"),
            // A date in the past, and a value that cannot be parsed, ask for no wait.
            Reply::status(503).header("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"),
            Reply::status(503).header("Retry-After", "soon"),
            Reply::status(200),
        ],
    );
    let (sandbox, report) = Sandbox::run_workflow(
        &format!(
            "
- id: call
  http: {{url: '{}'}}
  retry_config: {{attempts: 5, backoff: fixed, initial_delay: 2ms}}
",
            server.url("/")
        ),
        0,
    );
    let events = sandbox.events();
    let delays: Vec<_> =
        all(&events, "retry_scheduled").into_iter().map(|event| event["delay_ms"].clone()).collect();
    assert_eq!(delays, [1000, 2, 2]);
    // The requested wait is charged like any other delay.
    assert_eq!(report["delay_ms"], 1004);
    let classes: Vec<_> =
        all(&events, "attempt_failed").into_iter().map(|event| text(&event["class"])).collect();
    assert_eq!(classes[0], "throttled");
    assert_eq!(classes[2], "transient");
    assert_lawful(&events);
}

#[test]
fn retry_after_by_a_date_is_waited_for() {
    let date = "Fri, 01 Jan 2100 00:00:00 GMT";
    let reply = Reply::status(503).header("Retry-After", date);
    let server = ScriptedServer::start().on("/", &[reply]);
    let sandbox = retried_request(&server, "attempts: 2, initial_delay: 1ms, max_retry_after: 900000h");
    let due = sandbox.run_suspended_at("retry_scheduled")["due_at"].clone();
    let promised = millis(&json!("2100-01-01T00:00:00.000Z"));
    assert!(millis(&due) >= promised - 1, "{due}");
    assert!(text(&due).starts_with("2100-01-01T00:"), "{due}");
}

#[test]
fn a_wait_longer_than_the_limit_stops_the_command_rather_than_come_back_early() {
    for (requested, limit, code) in [
        ("301", "", 1),
        ("Fri, 01 Jan 2100 00:00:00 GMT", "", 1),
        ("99999999999999999999", "", 1),
        ("2", ", max_retry_after: 1s", 1),
        ("0", ", max_retry_after: 1s", 0),
    ] {
        let refused = Reply::status(503).header("Retry-After", requested);
        let server = ScriptedServer::start().on("/", &[refused, Reply::status(200)]);
        let sandbox = retried_request(&server, &format!("attempts: 5, initial_delay: 1ms{limit}"));
        let report = sandbox.run().exits(code).json();
        if code == 1 {
            assert_eq!(report["reason"], "retry_after_exceeds_limit", "{requested}");
            assert_eq!(server.all().len(), 1, "{requested}");
        }
    }
}

#[test]
fn statuses_and_kinds_of_failure_that_are_named_are_sent_again() {
    let limited = Reply::status(429);
    let lost = Reply::status(404);
    let broken = Reply::status(500);
    for (reply, config, requests) in [
        (&limited, "", 1),
        (&limited, "retry_statuses: [429]", 2),
        (&limited, "retry_on: [rate_limit]", 2),
        (&limited, "retry_on: [network]", 1),
        (&lost, "retry_statuses: [429]", 1),
        (&lost, "retry_statuses: ['400-410']", 2),
        (&broken, "retry_on: [server_error]", 2),
        (&broken, "retry_on: [network, timeout]", 1),
        (&broken, "rules: [{status: 500, then: stop}]", 1),
        (&lost, "rules: [{status: 404, then: retry}]", 2),
        (&lost, "rules: [{output: 'answered 4', then: retry}]", 2),
        (&Reply::Close, "retry_on: [network]", 2),
        (&Reply::Close, "retry_on: [server_error]", 1),
    ] {
        let server = ScriptedServer::start().on("/", &[reply.clone(), Reply::status(200)]);
        let comma = if config.is_empty() { "" } else { ", " };
        let sandbox = retried_request(&server, &format!("attempts: 1, initial_delay: 1ms{comma}{config}"));
        let ended = sandbox.run();
        assert_eq!(server.all().len(), requests, "{reply:?} {config}");
        assert_eq!(ended.code, i32::from(requests == 1), "{reply:?} {config}");
    }
}

#[test]
fn a_throttled_429_waits_as_long_as_it_asks() {
    let limited = Reply::status(429).header("Retry-After", "1");
    let server = ScriptedServer::start().on("/", &[limited, Reply::status(200)]);
    let http = format!("url: '{}'", server.url("/"));
    let (sandbox, _) = Sandbox::run_workflow(
        &format!(
            "- {{id: call, http: {{{http}}}, retry_config: {{attempts: 1, initial_delay: 1ms, retry_on: [rate_limit]}}}}\n"
        ),
        0,
    );
    let events = sandbox.events();
    assert_eq!(one(&events, "attempt_failed")["class"], "throttled");
    assert_eq!(one(&events, "retry_scheduled")["delay_ms"], 1000);
}

#[test]
fn a_connection_is_reused_and_a_request_lost_on_it_is_not_silently_sent_again() {
    let server = ScriptedServer::start()
        .on("/1", &[Reply::status(200)])
        .on("/2", &[Reply::Close, Reply::Close, Reply::status(200)])
        .on("/3", &[Reply::status(200)]);
    let sandbox = request_each(&server, &["1", "2", "3"], "");
    sandbox.run().exits(0);
    let events = sandbox.events();
    assert_one_request_per_attempt(&server, &events);
    let connections: Vec<_> = server.all().iter().map(|request| request.connection).collect();
    assert_eq!(connections[0], connections[1], "kept for the next one");
    assert_eq!(by_item(&events)["2"].len(), 3);
}

#[test]
fn the_answer_is_captured_and_may_be_used() {
    let body = json!({"id": 7, "tags": ["a b", "c"]}).to_string();
    let server =
        ScriptedServer::start().on("/made", &[Reply::text(201, &body)]).on("/7", &[Reply::status(200)]);
    let (sandbox, _) = Sandbox::run_workflow(
        &format!(
            "
- id: make
  http: {{method: POST, url: '{}'}}
  capture_output: made
  capture_format: json
- id: use
  http: {{url: '{}/${{made.id}}', headers: {{X-Tag: '${{made.tags[0]}}'}}}}
- shell: printf '%s' ${{made.tags[1]}} > tag
",
            server.url("/made"),
            server.origin()
        ),
        0,
    );
    assert_eq!(server.requests("/7")[0].header("x-tag"), Some("a b"));
    assert_eq!(sandbox.read("tag"), "c");
    let wrong = ScriptedServer::start().on("/", &[Reply::text(200, "no json")]);
    let http = format!("url: '{}'", wrong.url("/"));
    let sandbox = one_request(&http, "  capture_output: made\n  capture_format: json\n");
    let report = sandbox.run().exits(1).json();
    assert_eq!(report["reason"], "permanent");
    assert_eq!(wrong.all().len(), 1);
}

#[test]
fn an_answer_of_any_size_or_kind_is_bounded_and_judged_by_its_status() {
    let most = 16 << 20;
    let cases = [
        (Reply::Huge(200, most), "", vec!["success"]),
        (Reply::Huge(200, most + 1), "", vec!["permanent permanent"]),
        (Reply::Huge(503, most + 1), "", vec!["status transient"; 3]),
        (Reply::Huge(404, most + 1), "", vec!["status permanent"]),
        (Reply::Huge(200, 11), "      output_limit: 10\n", vec!["permanent permanent"]),
        (Reply::Huge(200, 10), "      output_limit: 10\n", vec!["success"]),
        // A body that no capture reads need not be text.
        (Reply::bytes(b"\xff\xfe"), "", vec!["success"]),
        (Reply::bytes(b"\xff\xfe"), "      capture_output: got\n", vec!["unreadable permanent"]),
        (Reply::bytes(b""), "      capture_output: got\n", vec!["success"]),
        (Reply::status(204), "      capture_output: got\n", vec!["success"]),
    ];
    for (reply, more, expected) in cases {
        let server = ScriptedServer::start().on("/x", std::slice::from_ref(&reply));
        let sandbox = request_each(&server, &["x"], more);
        sandbox.run();
        let events = sandbox.events();
        assert_eq!(by_item(&events)["x"], expected, "{reply:?} {more}");
        assert_one_request_per_attempt(&server, &events);
        for failed in all(&events, "attempt_failed") {
            let length = failed["error"].as_str().unwrap().len();
            assert!(length <= 4 << 10, "{length}");
        }
    }
}

#[test]
fn the_protocol_of_steps_is_read_from_the_body() {
    let argyll = |body: &str| Reply::text(200, body);
    for (reply, reason, expected) in [
        (Reply::outputs(&json!({"a": 1})), None, vec!["success"]),
        (argyll(r#"{"success":true}"#), None, vec!["success"]),
        (Reply::refusal("out of stock"), Some("out of stock"), vec!["refused permanent"]),
        (argyll(r#"{"success":false}"#), Some(""), vec!["refused permanent"]),
        (argyll("hello"), Some("protocol"), vec!["unreadable permanent"]),
        (argyll("{}"), Some("success"), vec!["unreadable permanent"]),
        (argyll(""), Some("protocol"), vec!["unreadable permanent"]),
        (Reply::bytes(b"\xff"), Some("UTF-8"), vec!["unreadable permanent"]),
        // The status decides before the body.
        (Reply::text(500, r#"{"success":true}"#), Some("HTTP 500"), vec!["status transient"; 3]),
        (Reply::text(400, r#"{"success":true}"#), Some("HTTP 400"), vec!["status permanent"]),
    ] {
        let server = ScriptedServer::start().on("/", std::slice::from_ref(&reply));
        let http = format!("method: POST, url: '{}', protocol: argyll", server.url("/"));
        let sandbox = one_request(&http, "");
        let report = sandbox.run().exits(i32::from(reason.is_some())).json();
        assert_eq!(by_item(&sandbox.events())["call"], expected, "{reply:?}");
        let error = report["error"].as_str().unwrap_or_default();
        assert!(error.contains(reason.unwrap_or_default()), "{error}");
    }
}
