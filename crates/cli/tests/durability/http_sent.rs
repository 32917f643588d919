//! The content of HTTP requests: tokens, values, secrets; and proxies.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::history::{all, has_event};
use crate::http::one_request;
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::sandbox::Sandbox;

/// A map with one request for each item.
fn request_each(items: &Value, http: &str) -> Sandbox {
    let sandbox = Sandbox::of(&format!(
        "
mode: mapreduce
map:
  input: items.json
  max_parallel: 1
  agent_template:
    - id: call
      http: {{{http}}}
"
    ));
    sandbox.write("items.json", &items.to_string());
    sandbox
}

#[test]
fn all_attempts_carry_the_same_token_and_the_id_of_the_item() {
    let server = ScriptedServer::start().on("/", &[Reply::status(503), Reply::Close, Reply::status(200)]);
    let http = format!("method: PUT, url: '{}'", server.url("/"));
    let sandbox = one_request(&http, "");
    sandbox.run().exits(0);
    let requests = server.all();
    assert_eq!(requests.len(), 3);
    let events = sandbox.events();
    let id = all(&events, "attempt_started")[0]["correlation_id"].as_str();
    for request in &requests {
        assert_eq!(request.method, "PUT");
        assert_eq!(request.token(), requests[0].token());
        assert_eq!(request.header("Undaunted-Correlation-Id"), id);
    }
    assert!(requests[0].at <= requests[1].at);
    let agent = requests[0].header("User-Agent").unwrap();
    assert!(agent.starts_with("undaunted/"), "{agent}");
}

#[test]
fn tokens_differ_from_item_to_item_and_a_redrive_has_another() {
    let server = ScriptedServer::start().on("/", &[Reply::status(404)]);
    let http = format!("url: '{}'", server.url("/"));
    let sandbox = request_each(&json!(["a", "b"]), &http);
    sandbox.run().exits(4);
    server.answers("/", &[Reply::status(200)]);
    sandbox.redrive().exits(0);
    let sent = server.all();
    assert_eq!(sent.len(), 4);
    for (one, other) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
        assert_ne!(sent[one].token(), sent[other].token());
    }
    let id = |number: usize| sent[number].header("Undaunted-Correlation-Id").unwrap();
    assert_eq!((id(0), id(1)), (id(2), id(3)));
}

#[test]
fn a_header_that_the_command_gives_itself_is_not_sent_twice() {
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    let http = format!(
        "method: POST, url: '{}', body: {{a: 1}}, headers: {{idempotency-key: mine, content-type: text/x, X-Two: b}}",
        server.url("/")
    );
    one_request(&http, "").run().exits(0);
    let sent = &server.all()[0];
    let count_headers = |name: &str| {
        let headers = sent.headers.iter();
        headers.filter(|(key, _)| key.eq_ignore_ascii_case(name)).count()
    };
    assert_eq!((count_headers("Idempotency-Key"), count_headers("Content-Type")), (1, 1));
    assert_eq!(sent.token(), "mine");
    assert_eq!(sent.header("content-type"), Some("text/x"));
    assert_eq!(count_headers("Undaunted-Correlation-Id"), 1);
}

#[test]
fn a_value_stays_one_segment_of_a_url_whatever_it_contains() {
    let server = ScriptedServer::start();
    let url = format!("{}/v1/${{item.x}}/end?q=${{item.x}}&z=1", server.origin());
    let items = [
        ("a b", "a%20b"),
        ("a/b", "a%2Fb"),
        ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd"),
        ("x?y=1&z=2#f", "x%3Fy%3D1%26z%3D2%23f"),
        ("100%", "100%25"),
        ("%2e%2e", "%252e%252e"),
        ("é", "%C3%A9"),
        ("a\r\nHost: evil", "a%0D%0AHost%3A%20evil"),
        ("@evil.example", "%40evil.example"),
        ("~a-b_c.d", "~a-b_c.d"),
        ("${item.secret}", "%24%7Bitem.secret%7D"),
    ];
    let input: Vec<Value> = items.iter().map(|(x, _)| json!({"x": x})).collect();
    let sandbox = request_each(&json!(input), &format!("url: '{url}', expect: [404]"));
    sandbox.run().exits(0);
    let sent: Vec<String> = server.all().into_iter().map(|sent| sent.target).collect();
    let expected = items.map(|(_, x)| format!("/v1/{x}/end?q={x}&z=1"));
    assert_eq!(sent, expected);
}

#[test]
fn a_value_that_would_change_the_path_is_refused_and_nothing_is_sent() {
    let server = ScriptedServer::start();
    let url = format!("{}/v1/${{item.x}}/delete", server.origin());
    let sandbox = request_each(&json!([{"x": ".."}, {"x": "."}]), &format!("url: '{url}'"));
    sandbox.run().exits(4);
    assert!(server.all().is_empty(), "{:?}", server.all());
    for letter in sandbox.dead_letters() {
        assert_eq!(letter["reason"], "permanent", "{letter}");
    }
}

#[test]
fn a_url_from_a_value_must_be_http() {
    for url in ["file:///etc/passwd", "ftp://127.0.0.1/", "nonsense", "http://"] {
        let sandbox = request_each(&json!([{"url": url}]), "url: '${item.url}'");
        sandbox.run().exits(4);
        let letters = sandbox.dead_letters();
        assert_eq!(letters[0]["reason"], "permanent", "{url}");
        assert!(!has_event(&sandbox.events(), "attempt_started"), "{url}");
    }
}

#[test]
fn a_value_that_is_not_allowed_in_a_header_is_refused_and_nothing_is_sent() {
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    let http = format!("url: '{}', headers: {{X-Name: '${{item.x}}'}}", server.url("/"));
    let items = json!([
        {"x": "a\r\nX-Evil: 1"},
        {"x": "a\nb"},
        {"x": "a\rb"},
        {"x": "a\u{0}b"},
        {"x": "plain"},
        {"x": "with \"signs\"; and é"},
    ]);
    let sandbox = request_each(&items, &http);
    sandbox.run().exits(4);
    let letters = sandbox.dead_letters();
    assert_eq!(letters.len(), 4, "{letters:#?}");
    for letter in &letters {
        assert_eq!(letter["reason"], "permanent", "{letter}");
    }
    let sent = server.all();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|sent| sent.header("X-Evil").is_none()));
    assert_eq!(sent[1].header("x-name"), Some("with \"signs\"; and é"));
}

#[test]
fn a_header_that_says_where_the_body_ends_cannot_be_given() {
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    for header in ["content-length: '0'", "Transfer-Encoding: chunked"] {
        let http = format!(
            "method: POST, url: '{}', body: 'GET /evil HTTP/1.1', headers: {{{header}}}",
            server.url("/")
        );
        let report = one_request(&http, "").run().exits(1).json();
        assert_eq!(report["reason"], "permanent", "{report}");
    }
    assert!(server.all().is_empty());
}

#[test]
fn values_in_a_body_of_json_stay_values() {
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    let http = format!(
        "method: POST, url: '{}', body: {{name: '${{item.x}}', all: '${{item}}', text: 'x-${{item.x}}', list: [1, true, null, '${{item.n:-0}}']}}",
        server.url("/")
    );
    let hostile = "\"},\"admin\":true,{\"a\":\"\u{0}\\\r\n${item.n}";
    let items = json!([{"x": hostile, "n": 5}, {"x": {"deep": [1]}}, {"x": 12.5, "n": [2]}]);
    let sandbox = request_each(&items, &http);
    sandbox.run().exits(0);
    let sent: Vec<Value> = server.all().iter().map(ReceivedRequest::json).collect();
    assert_eq!(server.all()[0].header("content-type"), Some("application/json"));
    assert_eq!(
        sent[0],
        json!({"name": hostile, "all": items[0], "text": format!("x-{hostile}"), "list": [1, true, null, 5]})
    );
    assert_eq!(sent[1]["name"], json!({"deep": [1]}));
    assert_eq!(sent[1]["text"], "x-{\"deep\":[1]}");
    assert_eq!(sent[2]["name"], 12.5);
    assert_eq!(sent[2]["list"][3], json!([2]));
}

#[test]
fn a_body_of_text_is_sent_as_it_is_however_large_its_values() {
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    let http = format!("method: POST, url: '{}', body: 'hello ${{item.x}}'", server.url("/"));
    let large = "é".repeat(200_000);
    let sandbox = request_each(&json!([{"x": "a\u{0}b\r\n"}, {"x": large}]), &http);
    sandbox.run().exits(0);
    let sent = server.all();
    assert_eq!(sent[0].text(), "hello a\u{0}b\r\n");
    assert_eq!(sent[1].text(), format!("hello {large}"));
    assert_eq!(sent[0].header("content-type"), None);
}

/// Whether any file below a folder contains these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.into_iter().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, bytes);
        }
        let content = fs::read(&path).unwrap_or_default();
        content.windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn secrets_are_sent_and_appear_nowhere_else() {
    let secret = "s3cret-Value-71";
    let server = ScriptedServer::start().by("/", |request| {
        // A server that echoes the request in its error.
        let seen_by_server = format!("{:?} {} {}", request.headers, request.target, request.text());
        Reply::text(500, &seen_by_server)
    });
    let sandbox = Sandbox::of(&format!(
        "
secrets: {{API_KEY: {{env: MY_KEY}}}}
commands:
  - id: call
    http:
      method: POST
      url: '{}?key=${{env.API_KEY}}'
      headers: {{Authorization: 'Bearer ${{env.API_KEY}}'}}
      body: {{key: '${{env.API_KEY}}'}}
    retry_config: {{attempts: 1, initial_delay: 1ms}}
    on_failure: {{http: {{url: '{}', headers: {{X-Key: '${{env.API_KEY}}'}}}}}}
",
        server.url("/"),
        server.url("/gone"),
    ));
    let key = [("MY_KEY", secret)];
    let ended = sandbox.run_with(&key).exits(1);
    for sent in server.requests("/") {
        let bearer = format!("Bearer {secret}");
        assert_eq!(sent.header("authorization"), Some(bearer.as_str()));
        assert!(sent.target.ends_with(secret) && sent.text().contains(secret));
    }
    assert_eq!(server.requests("/gone")[0].header("x-key"), Some(secret));
    let mut outputs = vec![ended.out, ended.err];
    for args in [
        &["events", "@last", "--json"][..],
        &["dlq", "ls", "@last", "--json"],
        &["dlq", "show", "@last/call", "--json"],
        &["explain", "@last/call"],
        &["explain", "@last", "--json"],
        &["show", "@last", "--json"],
        &["logs", "@last/call"],
        &["breaker", "ls", "--json"],
    ] {
        let ended = sandbox.call(args);
        outputs.extend([ended.out, ended.err]);
    }
    for outputs in outputs {
        assert!(!outputs.contains(secret), "{outputs}");
    }
    assert!(!holds(sandbox.store(), secret.as_bytes()));
}

#[test]
fn requests_go_through_the_proxy_of_the_environment() {
    let target = "http://step.invalid/run?x=1";
    let proxy = ScriptedServer::start().on("http://step.invalid/run", &[Reply::status(200)]);
    let sandbox = one_request(&format!("url: '{target}'"), "");
    let through = [("http_proxy", proxy.origin())];
    let through = through.each_ref().map(|(name, value)| (*name, value.as_str()));
    sandbox.run_with(&through).exits(0);
    let sent = proxy.all();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].target, target);
    assert_eq!(sent[0].header("host"), Some("step.invalid"));
    // Hosts in `no_proxy` are called directly.
    let server = ScriptedServer::start().on("/", &[Reply::status(200)]);
    let sandbox = one_request(&format!("url: '{}'", server.url("/")), "");
    let around = [through[0], ("no_proxy", "127.0.0.1")];
    sandbox.run_with(&around).exits(0);
    assert_eq!((server.all().len(), proxy.all().len()), (1, 1));
}
