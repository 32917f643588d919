//! Safe by default: who may ask, how much, and whom steps may call.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Connection, Follower, webhook};
use crate::history::all;
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver};
use crate::webhooks::{done, later, taken_on, url};
use crate::world::World;

const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];

fn send(served: &Served, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    let mut connection = Connection::to(served.address());
    connection.send(method, path, headers, body.as_bytes()).unwrap()
}

#[test]
fn others_are_listened_to_only_with_a_token() {
    let world = World::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ended = Served::refused(&world, &["--listen", address], &[]).exits(2);
        assert!(ended.err.contains("UNDAUNTED_TOKEN"), "{}", ended.err);
        assert_eq!(ended.out, "");
    }
    let empty = world.path("empty");
    world.write("empty", "\n");
    let empty = ["--listen", "0.0.0.0:0", "--token-file", empty.to_str().unwrap()];
    Served::refused(&world, &empty, &[]).exits(2);
}

const TOKEN: &str = "s3cret-t0ken-of-the-test";

/// A server that everybody can reach, and its address on this machine.
fn public(world: &World) -> (Served, SocketAddr) {
    let public = "http://flows.example.com/base";
    let listen = ["--listen", "0.0.0.0:0", "--public-url", public];
    let served = Served::with(world, &listen, &[("UNDAUNTED_TOKEN", TOKEN)]);
    let address = format!("127.0.0.1:{}", served.address().port());
    (served, address.parse().unwrap())
}

fn send_to(address: SocketAddr, asked: (&str, &str), headers: &[&str], body: &str) -> Answer {
    let mut connection = Connection::to(address);
    let answer = connection.send(asked.0, asked.1, headers, body.as_bytes());
    answer.unwrap()
}

#[test]
fn with_a_token_nobody_is_answered_who_does_not_show_it() {
    let world = World::new();
    let (_served, address) = public(&world);
    let wrong = [
        "X: y".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer wrong".to_owned(),
        format!("Authorization: Bearer {}", &TOKEN[..12]),
        format!("Authorization: Bearer {TOKEN}x"),
        format!("Authorization: Basic {TOKEN}"),
    ];
    let asked = [
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
        for asked in asked {
            let answer = send_to(address, asked, &["Host: x", wrong], "");
            assert_eq!(answer.status, 401, "{wrong}: {asked:?}");
            answer.refused(401);
            assert_eq!(answer.header("www-authenticate"), Some("bearer"));
        }
    }
    assert!(Follower::with(address, &[]).is_err());
    // What carries a key of its own, or says nothing, is open.
    send_to(address, ("GET", "/health"), &["Host: x"], "").is(200);
    let result = r#"{"success":true}"#;
    send_to(address, ("POST", "/webhook/f/a/t"), &["Host: x"], result).refused(404);
}

#[test]
fn with_a_token_whoever_shows_it_is_answered_and_it_stands_nowhere() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[taken_on()]);
    let (served, address) = public(&world);
    let right = format!("Authorization: Bearer {TOKEN}");
    let headers = ["Host: flows.example.com", "Content-Type: application/json", &right];
    let get = |path: &str| send_to(address, ("GET", path), &headers, "");
    let post = |path: &str, body: &Value| send_to(address, ("POST", path), &headers, &body.to_string());
    // A page of the operator's may ask as well.
    let paged = [&headers[..], &["Origin: https://example.com"]].concat();
    send_to(address, ("GET", "/engine"), &paged, "").is(200);
    post("/engine/step", &later(&handlers, "a", &json!({}))).is(201);
    post("/engine/flow", &json!({"id": "f", "goals": ["a"]})).is(201);
    let told = url(&handlers.wait_for("/a", 1)[0]);
    let path = told.strip_prefix("http://flows.example.com/base").unwrap();
    let mut follower = Follower::with(address, &[&right]).unwrap_or_else(|answer| panic!("{answer:?}"));
    follower.follow("f");
    let result = webhook(&format!("http://{address}{path}"), &done(&json!({"x": 1})));
    result.unwrap().is(200);
    let events = follower.until("flow_completed");
    let shown = ["/engine/flow/f", "/engine", "/metrics"].map(|path| get(path).text());
    let journal = world.call(&["events", "f", "--json"]).out;
    let said = served.said();
    served.signal("TERM");
    let ended = served.wait().exits(0);
    let texts = [&journal, &said, &ended.err, &format!("{events:?}")];
    for text in shown.iter().chain(texts) {
        assert!(!text.contains(TOKEN), "{text}");
    }
    let calls = handlers.all();
    assert!(calls.iter().all(|call| call.header("Authorization").is_none()));
}

#[test]
fn without_a_token_pages_and_foreign_names_are_refused() {
    let world = World::new();
    let handlers = StepServer::start();
    let served =
        Served::with(&world, &[&LOCAL[..], &["--public-url", "https://flows.example.com"]].concat(), &[]);
    let step = giver(&handlers, "a", &json!({})).to_string();
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
    assert!(Follower::with(served.address(), &["Origin: http://localhost"]).is_err());
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
    let world = World::new();
    let served = Served::on(&world);
    let address = served.address();
    let large = served.ask("POST", "/engine/step", &" ".repeat(5 << 20));
    large.refused(413);
    let mut pieces = Connection::to(address);
    pieces.say(b"POST /engine/step HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    let piece = [b"10000\r\n", &vec![b' '; 0x10000][..], b"\r\n"].concat();
    let sent = (0..200).take_while(|_| pieces.say(&piece)).count();
    match pieces.hear() {
        Some(answer) => drop(answer.refused(413)),
        None => assert!(sent < 200, "nobody stopped it"),
    }
    // A head beyond all bounds.
    let mut wide = Connection::to(address);
    wide.say(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ");
    wide.say(&vec![b'x'; 2 << 20]);
    assert!(wide.hear().is_none_or(|answer| answer.status >= 400));
    // Whoever never says what it wants, a byte at a time, keeps nobody else from being heard.
    let slow: Vec<_> = (0..20)
        .map(|n| {
            thread::spawn(move || {
                let mut slow = Connection::to(address);
                let began = Instant::now();
                let head = if n % 2 == 0 { &b"GET /health HTTP/1.1\r\nX: "[..] } else { b"" };
                slow.say(head);
                while began.elapsed() < Duration::from_secs(25) && (n % 4 == 1 || slow.say(b"x")) {
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
fn steps_may_be_only_where_the_operator_allows_them() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::status(503), Reply::outputs(&json!({"x": 1}))]);
    let other = StepServer::start().on("/b", &[Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 1, "backoff": 300})));
    served.begin("f", "a", &json!({}));
    served.item("f", "a", |item| item["retry_count"] == 1);
    served.kill();

    let allowed = format!("{}/*", other.origin());
    let served = Served::with(&world, &[&LOCAL[..], &["--allow-endpoint", &allowed]].concat(), &[]);
    let flow = served.ends("f", "failed");
    assert_eq!(handlers.all().len(), 1, "{flow:#}");
    let mut step = giver(&handlers, "c", &json!({}));
    let error = served.post("/engine/step", &step).refused(400);
    assert!(error.contains(&handlers.url("/c")), "{error}");
    for wrong in [
        format!("{}@{}", other.origin(), handlers.url("/b").strip_prefix("http://").unwrap()),
        handlers.url("/b?u=").clone() + &other.url("/"),
    ] {
        step["http"]["endpoint"] = json!(wrong);
        served.post("/engine/step", &step).refused(400);
    }
    let mut watched = giver(&other, "b", &json!({}));
    watched["http"]["health_check"] = json!(handlers.url("/health"));
    served.post("/engine/step", &watched).refused(400);
    served.register(&giver(&other, "b", &json!({})));
    served.begin("g", "b", &json!({}));
    served.ends("g", "completed");
    // One that was registered before is not called.
    served.begin("h", "a", &json!({}));
    served.ends("h", "failed");
    assert_eq!(handlers.all().len(), 1);
}

#[test]
fn values_of_secrets_of_a_flow_by_file_stand_nowhere() {
    const SECRET: &str = "v3ry-s3cret-value";
    let handlers = StepServer::start().on(
        "/a",
        &[
            Reply::status(503).header("X-Echo", SECRET),
            Reply::refusal(&format!("the key {SECRET} is wrong")).gated(),
        ],
    );
    let endpoint = handlers.url("/a");
    let world = World::of(&format!(
        "mode: flow\ngoals: [a]\nsecrets: {{KEY: {{file: key.txt}}}}\nsteps:\n  - {{id: a, type: sync, http: {{endpoint: '{endpoint}'}}, \
         attributes: {{x: {{role: output}}}}, work_config: {{max_retries: 3, backoff: 1}}}}\n"
    ));
    world.write("key.txt", SECRET);
    let running = world.spawn(&["run", "w.yaml", "--json"]);
    handlers.wait_for("/a", 2);
    running.kill();
    let job = world.job();
    let served = Served::with(&world, &[&LOCAL[..], &["--log-level", "debug"]].concat(), &[]);
    handlers.open("/a");
    served.ends(&job, "failed");
    let mut follower = served.follower();
    let state: Value = follower.follow(&job);
    let journal = world.call(&["events", &job, "--json"]).exits(0).out;
    let shown = served.flow(&job).to_string();
    let engine = served.get("/engine").text();
    for text in [&state.to_string(), &journal, &shown, &engine, &served.said()] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert!(!all(&world.events_of(&job), "attempt_failed").is_empty());
}
