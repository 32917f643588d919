//! Safe by default: authentication, request limits, and the endpoints that steps may call.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Connection, EventFollower, ReceivedAnswer, send_result, success};
use crate::history::has_event;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, provider};

const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];

fn send(served: &RunningServer, method: &str, path: &str, headers: &[&str], body: &str) -> ReceivedAnswer {
    let mut connection = Connection::open(served.address());
    connection.send(method, path, headers, body.as_bytes()).unwrap()
}

#[test]
fn a_public_address_is_listened_on_only_with_a_token() {
    let sandbox = Sandbox::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ended =
            RunningServer::refused(&sandbox, &["--listen", address], &[]).err_contains("UNDAUNTED_TOKEN");
        assert_eq!(ended.out, "");
    }
    let empty = sandbox.path("empty");
    sandbox.write("empty", "\n");
    let empty = ["--listen", "0.0.0.0:0", "--token-file", empty.to_str().unwrap()];
    RunningServer::refused(&sandbox, &empty, &[]);
}

const TOKEN: &str = "s3cret-t0ken-of-the-test";

/// A server on all interfaces, and its address on this machine.
fn public_server(sandbox: &Sandbox) -> (RunningServer, SocketAddr) {
    let public = "http://flows.example.com/base";
    let listen = ["--listen", "0.0.0.0:0", "--public-url", public];
    let served = RunningServer::with(sandbox, &listen, &[("UNDAUNTED_TOKEN", TOKEN)]);
    let address = format!("127.0.0.1:{}", served.address().port());
    (served, address.parse().unwrap())
}

fn send_to(address: SocketAddr, request: (&str, &str), headers: &[&str], body: &str) -> ReceivedAnswer {
    let mut connection = Connection::open(address);
    let answer = connection.send(request.0, request.1, headers, body.as_bytes());
    answer.unwrap()
}

#[test]
fn with_a_token_a_client_that_does_not_send_it_is_refused() {
    let sandbox = Sandbox::new();
    let (_served, address) = public_server(&sandbox);
    let wrong = [
        "X: y".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer wrong".to_owned(),
        format!("Authorization: Bearer {}", &TOKEN[..12]),
        format!("Authorization: Bearer {TOKEN}x"),
        format!("Authorization: Basic {TOKEN}"),
    ];
    let requests = [
        ("GET", "/engine"),
        ("GET", "/metrics"),
        ("GET", "/engine/flow/f"),
        ("POST", "/engine/step"),
        ("POST", "/health"),
        ("GET", "/engine/ws"),
        ("GET", "/nowhere"),
        ("GET", "/webhook/f/a/t"),
    ];
    for wrong in &wrong {
        for request in requests {
            let answer = send_to(address, request, &["Host: x", wrong], "");
            assert_eq!(answer.status, 401, "{wrong}: {request:?}");
            answer.refused(401);
            assert_eq!(answer.header("www-authenticate"), Some("bearer"));
        }
    }
    assert!(EventFollower::connect_with(address, &[]).is_err());
    // Health needs no token, and a webhook URL carries its own.
    send_to(address, ("GET", "/health"), &["Host: x"], "").is(200);
    let result = r#"{"success":true}"#;
    send_to(address, ("POST", "/webhook/f/a/t"), &["Host: x"], result).refused(404);
}

#[test]
fn with_a_token_a_client_that_sends_it_is_answered_and_the_token_is_stored_nowhere() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let (served, address) = public_server(&sandbox);
    let right = format!("Authorization: Bearer {TOKEN}");
    let headers = ["Host: flows.example.com", "Content-Type: application/json", &right];
    let get = |path: &str| send_to(address, ("GET", path), &headers, "");
    let post = |path: &str, body: &Value| send_to(address, ("POST", path), &headers, &body.to_string());
    // With the token, a browser page may send requests too.
    let paged = [&headers[..], &["Origin: https://example.com"]].concat();
    send_to(address, ("GET", "/engine"), &paged, "").is(200);
    post("/engine/step", &async_step(&handlers, "a", &json!({}))).is(201);
    post("/engine/flow", &json!({"id": "f", "goals": ["a"]})).is(201);
    let call_url = handlers.wait_for_call("/a").webhook_url();
    let path = call_url.strip_prefix("http://flows.example.com/base").unwrap();
    let mut follower =
        EventFollower::connect_with(address, &[&right]).unwrap_or_else(|answer| panic!("{answer:?}"));
    follower.follow("f");
    let result = send_result(&format!("http://{address}{path}"), success(&json!({"x": 1})));
    result.unwrap().is(200);
    let events = follower.read_until("flow_completed");
    let states = ["/engine/flow/f", "/engine", "/metrics"].map(|path| get(path).text());
    let journal = sandbox.call(&["events", "f", "--json"]).out;
    let output = served.output();
    served.signal("TERM");
    let ended = served.wait().exits(0);
    let texts = [&journal, &output, &ended.err, &format!("{events:?}")];
    for text in states.iter().chain(texts) {
        assert!(!text.contains(TOKEN), "{text}");
    }
    let calls = handlers.all();
    assert!(calls.iter().all(|call| call.header("Authorization").is_none()));
}

#[test]
fn without_a_token_web_pages_and_foreign_host_names_are_refused() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start();
    let served = RunningServer::with(
        &sandbox,
        &[&LOCAL[..], &["--public-url", "https://flows.example.com"]].concat(),
        &[],
    );
    let step = provider(&handlers, "a", &json!({})).to_string();
    let kind = "Content-Type: application/json";
    let post = |headers: &[&str]| send(&served, "POST", "/engine/step", headers, &step);
    for host in [
        "Host: evil.example",
        "Host: localhost.evil.example",
        "Host: 127.0.0.1.evil.example",
        "Host: 10.0.0.1",
        "Host: ",
        "X: no-host",
    ] {
        let answer = post(&[host, kind]);
        assert!([400, 403].contains(&answer.status), "{host}: {}", answer.status);
    }
    post(&["Host: evil.example", kind]).refused(403);
    for origin in ["Origin: http://localhost", "Origin: null", "Origin: https://flows.example.com"] {
        let answer = post(&["Host: localhost", kind, origin]);
        answer.refused(403);
        assert!(!answer.head.contains("access-control"));
        send(&served, "GET", "/engine", &["Host: localhost", origin], "").refused(403);
    }
    let preflight = send(
        &served,
        "OPTIONS",
        "/engine/step",
        &["Host: localhost", "Origin: http://x", "Access-Control-Request-Method: POST"],
        "",
    );
    assert!(!preflight.head.contains("access-control"), "{}", preflight.head);
    assert!(EventFollower::connect_with(served.address(), &["Origin: http://localhost"]).is_err());
    for kind in ["Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "X: no-type"]
    {
        post(&["Host: localhost", kind]).refused(415);
    }
    assert_eq!(served.get("/engine/step").is(200)["count"], 0);
    for host in [
        "Host: localhost:7070",
        "Host: 127.0.0.1",
        "Host: [::1]:80",
        "Host: flows.example.com",
        "Host: LOCALHOST",
    ] {
        post(&[host, "Content-Type: application/json; charset=utf-8"]).is(201);
    }
}

#[test]
fn a_request_that_is_too_large_or_too_slow_is_cut_and_others_are_answered() {
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    let address = served.address();
    let large = served.ask("POST", "/engine/step", &" ".repeat(5 << 20));
    large.refused(413);
    let mut pieces = Connection::open(address);
    pieces.send_bytes(b"POST /engine/step HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    let piece = [b"10000\r\n", &vec![b' '; 0x10000][..], b"\r\n"].concat();
    let sent = (0..200).take_while(|_| pieces.send_bytes(&piece)).count();
    match pieces.read_answer() {
        Some(answer) => drop(answer.refused(413)),
        None => assert!(sent < 200, "no limit stopped it"),
    }
    // Headers over the size limit.
    let mut wide = Connection::open(address);
    wide.send_bytes(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
    wide.send_bytes(&vec![b'x'; 2 << 20]);
    assert!(wide.read_answer().is_none_or(|answer| answer.status == 431));
    // A client that sends its request a byte at a time does not keep others from being answered.
    let slow: Vec<_> = (0..20)
        .map(|n| {
            thread::spawn(move || {
                let mut slow = Connection::open(address);
                let began = Instant::now();
                let head = if n % 2 == 0 { &b"GET /health HTTP/1.1\r\nX: "[..] } else { b"" };
                slow.send_bytes(head);
                while began.elapsed() < Duration::from_secs(25) && (n % 4 == 1 || slow.send_bytes(b"x")) {
                    if slow.is_closed(Duration::from_millis(200)) {
                        break;
                    }
                }
                began.elapsed()
            })
        })
        .collect();
    for _ in 0..20 {
        served.get("/health").is(200);
    }
    for slow in slow {
        assert!(slow.join().unwrap() < Duration::from_secs(20));
    }
    served.get("/health").is(200);
}

#[test]
fn steps_may_only_have_endpoints_that_the_operator_allows() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503), Reply::x(1)]);
    let other = ScriptedServer::start().on("/b", &[Reply::x(1)]);
    let served = RunningServer::on(&sandbox);
    served.register(&provider(&handlers, "a", &json!({"max_retries": 1, "backoff": 300})));
    served.start_flow("f", "a", &json!({}));
    served.wait_for_first_retry("f", "a");
    served.kill();

    let allowed = format!("{}/*", other.origin());
    let served = RunningServer::on_with(&sandbox, &["--allow-endpoint", &allowed]);
    let flow = served.wait_for_end("f", "failed");
    assert_eq!(handlers.all().len(), 1, "{flow:#}");
    let mut step = provider(&handlers, "c", &json!({}));
    let error = served.post("/engine/step", &step).refused(400);
    assert!(error.contains(&handlers.url("/c")), "{error}");
    for wrong in [
        format!("{}@{}", other.origin(), handlers.url("/b").strip_prefix("http://").unwrap()),
        handlers.url("/b?u=").clone() + &other.url("/"),
    ] {
        step["http"]["endpoint"] = json!(wrong);
        served.post("/engine/step", &step).refused(400);
    }
    let mut watched = provider(&other, "b", &json!({}));
    watched["http"]["health_check"] = json!(handlers.url("/health"));
    served.post("/engine/step", &watched).refused(400);
    served.register(&provider(&other, "b", &json!({})));
    served.run_flow("g", "b", &json!({}), "completed");
    // A step that was registered before is not called either.
    served.run_flow("h", "a", &json!({}), "failed");
    assert_eq!(handlers.all().len(), 1);
}

#[test]
fn secret_values_of_a_flow_file_appear_nowhere() {
    const SECRET: &str = "v3ry-s3cret-value";
    let handlers = ScriptedServer::start().on(
        "/a",
        &[
            Reply::status(503).header("X-Echo", SECRET),
            Reply::refusal(&format!("the key {SECRET} is wrong")).gated(),
        ],
    );
    let endpoint = handlers.url("/a");
    let sandbox = Sandbox::of(&format!(
        "mode: flow\ngoals: [a]\nsecrets: {{KEY: {{file: key.txt}}}}\nsteps:\n  - {{id: a, type: sync, http: {{endpoint: '{endpoint}'}}, \
         attributes: {{x: {{role: output}}}}, work_config: {{max_retries: 3, backoff: 1}}}}\n"
    ));
    sandbox.write("key.txt", SECRET);
    let running = sandbox.start_run();
    handlers.wait_for("/a", 2);
    running.kill();
    let job = sandbox.job();
    let served = RunningServer::on_with(&sandbox, &["--log-level", "debug"]);
    handlers.open("/a");
    served.wait_for_end(&job, "failed");
    let mut follower = served.follower();
    let state: Value = follower.follow(&job);
    let journal = sandbox.stdout(&["events", &job, "--json"]);
    let states = served.flow(&job).to_string();
    let engine = served.get("/engine").text();
    for text in [&state.to_string(), &journal, &states, &engine, &served.output()] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert!(has_event(&sandbox.events_of(&job), "attempt_failed"));
}
