//! The front of the server: who is answered when there are many, how much is held for them, and pages of other
//! origins.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Connection, EventFollower, ReceivedAnswer, success};
use crate::history::assert_contains;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, deliver, one_step, provider, retries};

const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];
const HOST: &str = "Host: localhost";

fn send(served: &RunningServer, method: &str, path: &str, headers: &[&str], body: &str) -> ReceivedAnswer {
    let mut connection = Connection::open(served.address());
    connection.send(method, path, headers, body.as_bytes()).unwrap()
}

/// Asserts that something takes far less time than the timeouts of slow clients.
#[track_caller]
fn soon<T>(act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = act();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    done
}

#[test]
fn slow_and_silent_clients_shut_out_neither_health_checks_nor_callers_with_the_token() {
    let sandbox = Sandbox::new();
    let served = RunningServer::with(&sandbox, &LOCAL, &[("UNDAUNTED_TOKEN", "s3cret")]);
    let right = "Authorization: Bearer s3cret";
    // Half of a head each, for all connections there are and more.
    let slow: Vec<Connection> = (0..600)
        .map(|_| {
            let mut slow = Connection::open(served.address());
            slow.send_bytes(b"POST /webhook/a/b/c HTTP/1.1\r\nX: ");
            slow
        })
        .collect();
    for _ in 0..3 {
        for (method, path) in [("GET", "/health"), ("HEAD", "/health"), ("GET", "/ready")] {
            let answer = soon(|| {
                let mut connection = Connection::open(served.address());
                connection.send_bytes(format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
                let head = connection.read_line().unwrap();
                head.contains(" 200 ")
            });
            assert!(answer, "{method} {path}");
        }
        soon(|| send(&served, "GET", "/engine", &[HOST, right], "")).is(200);
        soon(|| send(&served, "GET", "/engine", &[HOST], "")).refused(401);
    }
    let mut follower = EventFollower::connect_with(served.address(), &[right]).unwrap_or_else(|_| panic!());
    let answer = soon(|| follower.subscribe(&json!({"aggregate_id": ["catalog"]})));
    assert_eq!(answer["type"], "subscribed");
    drop(slow);
}

#[test]
fn clients_that_are_refused_or_send_needless_bodies_leave_room_for_others() {
    let sandbox = Sandbox::new();
    let served = RunningServer::with(&sandbox, &LOCAL, &[("UNDAUNTED_TOKEN", "s3cret")]);
    let right = "Authorization: Bearer s3cret";
    let mut kept = Vec::new();
    for (status, text) in [
        (401, "GET /engine HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        // All but one byte of the body is never sent.
        (200, "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx"),
    ] {
        for _ in 0..600 {
            let mut connection = Connection::open(served.address());
            connection.send_bytes(text.as_bytes());
            assert_eq!(soon(|| connection.read_answer()).unwrap().status, status);
            // It would ask again.
            kept.push(connection);
        }
        soon(|| send(&served, "GET", "/health", &[HOST], "")).is(200);
        soon(|| send(&served, "GET", "/engine", &[HOST, right], "")).is(200);
    }
    drop(kept);
}

#[test]
fn many_sockets_and_slow_bodies_keep_no_client_from_being_answered() {
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    let sockets: Vec<_> = (0..300).map(|_| EventFollower::connect_with(served.address(), &[])).collect();
    let (open, refused): (Vec<_>, Vec<_>) = sockets.into_iter().partition(Result::is_ok);
    assert_eq!((open.len(), refused.len()), (256, 44));
    for answer in refused.into_iter().filter_map(Result::err) {
        answer.unwrap().refused(503);
    }
    let mut slow: Vec<Connection> = (0..250)
        .map(|_| {
            let mut slow = Connection::open(served.address());
            slow.send_bytes(b"POST /engine/flow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
            slow
        })
        .collect();
    soon(|| served.get("/health")).is(200);
    soon(|| served.get("/engine")).is(200);
    for slow in &mut slow {
        slow.read_answer().unwrap().refused(408);
    }
    drop(open);
}

#[test]
fn bodies_of_webhooks_are_read_only_with_a_known_token_and_held_within_bounds() {
    const MIB: usize = 1 << 20;
    let (sandbox, handlers) = (Sandbox::new(), ScriptedServer::start().on("/a", &[Reply::accepted()]));
    let served = RunningServer::on(&sandbox);
    served.register(&async_step(&handlers, "a", &json!({})));
    served.start_flow("f", "a", &json!({}));
    let url = handlers.wait_for_call("/a").webhook_url();
    let path = url.strip_prefix("http://").and_then(|rest| Some(rest.split_at(rest.find('/')?).1)).unwrap();
    let post = |path: &str, length: usize| {
        let mut connection = Connection::open(served.address());
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
        connection.send_bytes(head.as_bytes());
        connection
    };
    // Nothing of the body is sent, and the answer comes all the same.
    for path in ["/webhook/f/a/unknown", "/webhook/f/b/x", "/webhook/unknown/a/x", "/webhook/%2e%2e/a/x"] {
        soon(|| post(path, 15 * MIB).read_answer()).unwrap().refused(404);
    }
    post(path, 17 * MIB).read_answer().unwrap().refused(413);
    // Every sender keeps its last byte: none of the bodies is complete.
    let piece = vec![b' '; 15 * MIB];
    let mut senders: Vec<Connection> = (0..16)
        .map(|_| {
            let mut sender = post(path, 15 * MIB + 1);
            // A refused body need not be taken whole.
            let _ = sender.send_bytes(&piece);
            sender
        })
        .collect();
    let status = fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < 220 << 10, "{peak} KiB");
    let answers = senders.iter_mut().map(|sender| sender.read_answer().map_or(0, |answer| answer.status));
    let answers: Vec<u16> = answers.collect();
    // Too many bytes at once, or too slow; a connection that was closed early is no answer.
    assert!(answers.iter().all(|status| [0, 408, 503].contains(status)), "{answers:?}");
    assert!(answers.contains(&503) && answers.contains(&408), "{answers:?}");
    drop(senders);
    deliver(&url, success(&json!({"x": 1})));
    served.completes_with_x("f", &json!(1));
}

#[test]
fn a_server_is_alive_at_once_and_ready_when_its_flows_run_again() {
    let (sandbox, handlers, served) = one_step(&[Reply::x(1).gated()], &retries(1));
    for n in 0..50 {
        served.start_flow(&format!("f{n}"), "a", &json!({}));
    }
    handlers.wait_for("/a", 50);
    served.kill();
    let served = RunningServer::on(&sandbox);
    let mut earlier = Vec::new();
    loop {
        served.get("/health").is(200);
        let answer = served.get("/ready");
        if answer.status == 200 {
            assert_eq!(answer.json(), json!({"service": "undaunted", "status": "ready"}));
            break;
        }
        assert_contains(&json!(answer.refused(503)), "recovery");
        earlier.push(answer.status);
    }
    // A server that is ready stays so.
    served.get("/ready").is(200);
    handlers.open("/a");
    served.wait_for_completed(50);
    served.stop();
}

const PAGE: &str = "Origin: http://localhost:3001";

/// As the page of the original calls: a preflight first, since it sends JSON.
fn call(served: &RunningServer, method: &str, path: &str, body: &str) -> Value {
    let asks = format!("Access-Control-Request-Method: {method}");
    let preflight = [HOST, PAGE, &asks, "Access-Control-Request-Headers: content-type"];
    let allowed = send(served, "OPTIONS", path, &preflight, "");
    assert_eq!(allowed.status, 204, "{}", allowed.head);
    assert!(allowed.header("access-control-allow-methods").unwrap().contains(&method.to_ascii_lowercase()));
    assert!(allowed.header("access-control-allow-headers").unwrap().contains("content-type"));
    assert_eq!(allowed.header("access-control-allow-origin"), Some("http://localhost:3001"));
    let headers = [HOST, PAGE, "Content-Type: application/json", "Accept: application/json, text/plain, */*"];
    let answer = send(served, method, path, &headers, body);
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://localhost:3001"));
    assert_eq!(answer.header("vary"), Some("origin"));
    assert!(answer.status < 300, "{}", answer.text());
    answer.json()
}

#[test]
fn a_page_of_an_allowed_origin_uses_the_api_and_its_events() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503), Reply::x(1)]);
    let served = RunningServer::on_with(
        &sandbox,
        &["--allow-origin", "http://localhost:3001", "--allow-origin", "https://flows.example.com"],
    );
    let follow = |aggregate: Value, types: Value| {
        let follower = EventFollower::connect_with(served.address(), &[PAGE]);
        let mut follower = follower.unwrap_or_else(|answer| panic!("{answer:?}"));
        let answer = follower.subscribe(&json!({"aggregate_id": aggregate, "event_types": types}));
        assert_eq!(answer["type"], "subscribed");
        (follower, answer["data"].clone())
    };
    let (mut steps, known) =
        follow(json!(["catalog"]), json!(["step_registered", "step_unregistered", "step_updated"]));
    assert_eq!(known["steps"], json!({}));
    let (mut flows, known) =
        follow(json!(["partition"]), json!(["step_health_changed", "flow_activated", "flow_deactivated"]));
    assert_eq!(known["health"], json!({}));

    let step = provider(&handlers, "a", &json!({"max_retries": 1, "backoff": 100}));
    assert_eq!(call(&served, "POST", "/engine/step", &step.to_string())["step"]["id"], "a");
    assert_eq!(steps.read_message()["data"]["step"]["id"], "a");
    assert_eq!(call(&served, "PUT", "/engine/step/a", &step.to_string())["step"]["id"], "a");
    let plan = call(&served, "POST", "/engine/plan", r#"{"goals":["a"],"init":{}}"#);
    assert_eq!(plan["goals"], json!(["a"]));
    let flow = r#"{"id":"f","goals":["a"],"init":{}}"#;
    assert_eq!(call(&served, "POST", "/engine/flow", flow)["flow_id"], "f");
    assert_eq!(flows.read_message()["data"]["flow_id"], "f");
    let (mut follower, state) = follow(json!(["flow", "f"]), json!(["work_not_completed", "flow_completed"]));
    assert_eq!(state["id"], "f");
    if state["status"] == "active" {
        let _ = follower.read_until("flow_completed");
    }
    let page =
        call(&served, "POST", "/engine/flow/query", r#"{"limit":20,"cursor":"","sort":"recent_desc"}"#);
    assert_eq!((&page["count"], &page["flows"][0]["id"]), (&json!(1), &json!("f")));
    assert_eq!(call(&served, "GET", "/engine/flow/f", "")["id"], "f");
    assert_eq!(call(&served, "GET", "/engine/flow", "")[0]["digest"]["status"], "completed");
    assert_eq!(call(&served, "DELETE", "/engine/step/a", "")["message"], "Step unregistered");

    // Errors are shown to the page as well; other pages are refused.
    let missing = send(&served, "GET", "/engine/flow/none", &[HOST, PAGE], "");
    missing.refused(404);
    assert_eq!(missing.header("access-control-allow-origin"), Some("http://localhost:3001"));
    for other in ["Origin: http://localhost:3002", "Origin: https://localhost:3001", "Origin: null"] {
        send(&served, "GET", "/engine", &[HOST, other], "").refused(403);
        assert!(EventFollower::connect_with(served.address(), &[other]).is_err());
    }
    send(&served, "GET", "/engine", &[HOST, "Origin: https://flows.example.com"], "").is(200);
    send(&served, "GET", "/engine", &["Host: evil.example", PAGE], "").refused(403);
    for wrong in ["*", "null", "localhost:3001", "http://localhost:3001/path", "ftp://x"] {
        let args = [&LOCAL[..], &["--allow-origin", wrong]].concat();
        let _ = RunningServer::refused(&sandbox, &args, &[]).err_contains("--allow-origin");
    }
}

#[test]
fn a_malformed_request_gets_the_shape_of_all_errors() {
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    let wide = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(1 << 20));
    for (status, text) in [
        (400, "nonsense\r\n\r\n"),
        (400, "GET /health HTTP/1.1\r\nno colon\r\n\r\n"),
        (400, "GET /health HTTP/7.0\r\n\r\n"),
        (400, "POST /engine/step HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
        (431, &wide),
        (400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ] {
        let mut connection = Connection::open(served.address());
        let _ = connection.send_bytes(text.as_bytes());
        connection.read_answer().unwrap().refused(status);
    }
}
