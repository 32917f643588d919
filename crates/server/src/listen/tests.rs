//! The bounds of a listener, reached over real sockets.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::sync::Notify;

use super::*;
use crate::fixture::{request, say};
use crate::guard::{Access, guarded};
use crate::limits::{RequestLimits, admitted, limited};
use crate::origins::AllowedOrigins;

const LOCAL: &[&str] = &["Host: localhost"];

fn listen(limits: ListenLimits, routes: Router) -> Listener {
    listen_with(limits, routes, Access::default())
}

fn listen_with(limits: ListenLimits, routes: Router, access: Access) -> Listener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let routes = routes
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(RequestLimits::of(&limits), limited))
        .layer(from_fn(admitted));
    Listener::start(listener, limits, |_| guarded(routes, access)).unwrap()
}

/// Answers with the length of the body.
fn counting() -> Router {
    Router::new().fallback(async |body: Bytes| body.len().to_string())
}

/// A connection over which this was sent.
fn sent(server: &Listener, text: &str) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// A route that reports that it was reached, and answers when it is released.
fn gated() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (reached, open) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, gate) = (Arc::clone(&reached), Arc::clone(&open));
    let wait = async move || {
        tell.notify_one();
        gate.notified().await;
        "{}"
    };
    let routes = Router::new().route("/wait", get(wait)).route("/now", get(async || "{}"));
    (routes, reached, open)
}

fn wait_for(reached: &Notify) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(reached.notified());
}

#[test]
fn requests_beyond_the_limit_get_503_and_a_retry_after() {
    let (routes, reached, open) = gated();
    let limits = ListenLimits { requests: 1, ..ListenLimits::default() };
    let server = listen(limits, routes);
    let address = server.address();
    let first = std::thread::spawn(move || say(address, &request("GET", "/wait", LOCAL, "")));
    wait_for(&reached);
    let (status, head, body) = say(address, &request("GET", "/now", LOCAL, ""));
    assert_eq!((status, body["status"].as_u64()), (503, Some(503)));
    assert!(head.contains("retry-after: 1"), "{head}");
    open.notify_one();
    assert_eq!(first.join().unwrap().0, 200);
    assert_eq!(say(address, &request("GET", "/now", LOCAL, "")).0, 200);
}

#[test]
fn without_room_only_health_checks_and_callers_with_the_token_are_answered() {
    let limits = ListenLimits { connections: 2, reserve: 2, ..ListenLimits::default() };
    let server = listen_with(limits, counting(), Access::by_token("s3cret".to_owned()));
    let address = server.address();
    let ask = |method: &str, path: &str, headers: &[&str]| say(address, &request(method, path, headers, ""));
    // They take all the room there is for clients without the token.
    let idle: Vec<_> = (0..2).map(|_| sent(&server, "POST /webhook/a/b/c HTTP/1.1\r\n")).collect();
    // Clients that say nothing at all are disconnected when others come.
    let silent: Vec<_> = (0..8).map(|_| sent(&server, "")).collect();
    for _ in 0..5 {
        let (status, head, body) = ask("POST", "/webhook/a/b/c", LOCAL);
        assert_eq!((status, body["status"].as_u64()), (503, Some(503)));
        assert!(head.contains("retry-after: 1") && head.contains("connection: close"), "{head}");
        assert_eq!(ask("GET", "/health", LOCAL).0, 200);
        assert_eq!(ask("HEAD", "/ready", LOCAL).0, 200);
        assert_eq!(ask("GET", "/engine", &["Host: x", "Authorization: Bearer s3cret"]).0, 200);
        assert_eq!(ask("GET", "/engine", LOCAL).0, 401);
    }
    drop((idle, silent));
    while ask("POST", "/webhook/a/b/c", LOCAL).0 != 200 {
        std::thread::yield_now();
    }
}

/// Asks over a connection that the client would keep.
fn ask_and_stay(server: &Listener, text: &str) -> (u16, String) {
    let begun = Instant::now();
    let (status, head, _) = say(server.address(), text);
    assert!(begun.elapsed() < Duration::from_secs(4), "{text}");
    (status, head)
}

#[test]
fn no_answer_keeps_a_place_in_the_reserve() {
    let limits = ListenLimits { connections: 1, reserve: 1, ..ListenLimits::default() };
    let origins = || AllowedOrigins::of(["http://localhost:3000"]).unwrap();
    let local = listen_with(limits, counting(), Access::local(None).with_origins(origins()));
    let closed =
        listen_with(limits, counting(), Access::by_token("s3cret".to_owned()).with_origins(origins()));
    let page = "Origin: http://localhost:3000\r\nAccess-Control-Request-Method: GET";
    for (server, refusal) in [(&local, 403), (&closed, 401)] {
        let idle = sent(server, "POST /webhook/a/b/c HTTP/1.1\r\n");
        for (expected, text) in [
            (refusal, "GET /engine HTTP/1.1\r\nHost: x\r\n\r\n".to_owned()),
            (204, format!("OPTIONS /engine HTTP/1.1\r\nHost: localhost\r\n{page}\r\n\r\n")),
            // The body never comes.
            (200, "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx".to_owned()),
            (200, "HEAD /ready HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
        ] {
            let (status, head) = ask_and_stay(server, &text);
            assert_eq!(status, expected, "{text}");
            assert!(head.contains("connection: close"), "{head}");
        }
        drop(idle);
    }
}

#[test]
fn a_body_that_nothing_needs_is_not_read() {
    // No byte of a body may be held.
    let server = listen(ListenLimits { body_bytes: 0, ..ListenLimits::default() }, counting());
    for method in ["GET", "HEAD"] {
        let text = format!("{method} /engine HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx");
        let (status, head) = ask_and_stay(&server, &text);
        assert_eq!(status, 200, "{method}");
        assert!(head.contains("connection: close"), "{head}");
    }
    // A connection on which nothing more is announced is kept.
    let mut kept = sent(&server, "GET /engine HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    let mut answer = [0; 1024];
    let read = kept.read(&mut answer).unwrap();
    assert!(!String::from_utf8_lossy(&answer[..read]).contains("connection: close"));
}

#[test]
fn callers_with_the_token_take_no_room_of_others() {
    let limits = ListenLimits { connections: 2, reserve: 1, ..ListenLimits::default() };
    let server = listen_with(limits, counting(), Access::by_token("s3cret".to_owned()));
    let known = "GET /a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cret\r\n\r\n";
    // Half as many as without the token, and each keeps its connection.
    let mut open = sent(&server, known);
    let _ = open.read(&mut [0; 64]).unwrap();
    let others: Vec<_> = (0..2).map(|_| sent(&server, "POST /webhook/a/b/c HTTP/1.1\r\n")).collect();
    open.write_all(known.as_bytes()).unwrap();
    assert!(open.read(&mut [0; 64]).unwrap() > 0);
    drop(others);
}

#[test]
fn slow_bodies_time_out_and_keep_no_client_from_being_answered() {
    let limits =
        ListenLimits { requests: 1, body_pause: Duration::from_millis(300), ..ListenLimits::default() };
    let server = listen(limits, counting());
    let head =
        "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    let mut slow: Vec<_> = (0..20).map(|_| sent(&server, head)).collect();
    assert_eq!(say(server.address(), &request("GET", "/y", LOCAL, "")).0, 200);
    for slow in &mut slow {
        let mut answer = [0; 12];
        slow.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 408");
    }
}

#[test]
fn the_bytes_of_all_bodies_together_are_bounded() {
    let (reached, open) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, gate) = (Arc::clone(&reached), Arc::clone(&open));
    let wait = async move |body: Bytes| {
        tell.notify_one();
        gate.notified().await;
        body.len().to_string()
    };
    let routes = Router::new().route("/wait", post(wait)).fallback_service(counting());
    let server = listen(ListenLimits { body_bytes: 100, ..ListenLimits::default() }, routes);
    let address = server.address();
    let json = ["Host: localhost", "Content-Type: application/json"];
    let first = std::thread::spawn(move || say(address, &request("POST", "/wait", &json, &"1".repeat(60))));
    // The body counts until its request is answered.
    wait_for(&reached);
    let send = |many: usize| say(address, &request("POST", "/now", &json, &"1".repeat(many)));
    let (status, head, body) = send(60);
    assert_eq!((status, body["status"].as_u64()), (503, Some(503)));
    assert!(head.contains("retry-after: 1"), "{head}");
    assert_eq!(send(40).0, 200);
    open.notify_one();
    assert_eq!(first.join().unwrap().0, 200);
    while send(60).0 != 200 {
        std::thread::yield_now();
    }
}

#[test]
fn bodies_of_clients_without_the_token_leave_room_for_those_with_it() {
    let limits = ListenLimits { body_bytes: 100, ..ListenLimits::default() };
    let (reached, open) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, gate) = (Arc::clone(&reached), Arc::clone(&open));
    let wait = async move |_: Bytes| {
        tell.notify_one();
        gate.notified().await;
        "{}"
    };
    let routes = Router::new().route("/webhook/a/b/c", post(wait)).fallback_service(counting());
    let server = listen_with(limits, routes, Access::by_token("s3cret".to_owned()));
    let address = server.address();
    let send = |path: &str, headers: &[&str], many: usize| {
        say(address, &request("POST", path, headers, &"1".repeat(many))).0
    };
    // Without the token no other body is read at all.
    assert_eq!(send("/engine/flow", LOCAL, 200), 401);
    let full = request("POST", "/webhook/a/b/c", LOCAL, &"1".repeat(100));
    let full = std::thread::spawn(move || say(address, &full).0);
    wait_for(&reached);
    let known = ["Host: x", "Content-Type: application/json", "Authorization: Bearer s3cret"];
    assert_eq!(send("/webhook/a/b/c", LOCAL, 1), 503);
    assert_eq!(send("/engine/flow", &known, 25), 200);
    assert_eq!(send("/engine/flow", &known, 26), 503);
    open.notify_one();
    assert_eq!(full.join().unwrap(), 200);
}

#[test]
fn a_client_that_does_not_read_its_answer_is_disconnected() {
    let large = async || "x".repeat(64 << 20);
    let routes = Router::new().route("/large", get(large)).fallback_service(counting());
    let limits =
        ListenLimits { connections: 1, event: Duration::from_millis(200), ..ListenLimits::default() };
    let server = listen(limits, routes);
    let mut unread = sent(&server, &request("GET", "/large", LOCAL, ""));
    // It takes the only connection for as long as it lasts.
    while say(server.address(), &request("GET", "/now", LOCAL, "")).0 != 200 {
        std::thread::yield_now();
    }
    let mut answer = Vec::new();
    let _ = unread.read_to_end(&mut answer);
    assert!(answer.len() < 64 << 20);
    // One that reads slowly gets everything.
    let mut slow = sent(&server, &request("GET", "/large", LOCAL, ""));
    let mut read = 0;
    let mut piece = vec![0; 1 << 20];
    while let Ok(more @ 1..) = slow.read(&mut piece) {
        read += more;
    }
    assert!(read > 64 << 20);
}

#[test]
fn a_malformed_head_gets_an_error_in_json() {
    let limits = ListenLimits { header: Duration::from_millis(300), ..ListenLimits::default() };
    let server = listen(limits, counting());
    let long = "x".repeat(80 << 10);
    let cases = [
        (400, "nonsense\r\n\r\n".to_owned()),
        (400, "GET\r\n\r\n".to_owned()),
        (400, "GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned()),
        (400, "GET / HTTP/1.1\r\nX\u{1}: y\r\n\r\n".to_owned()),
        (400, "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned()),
        (400, "G\u{7f}T / HTTP/1.1\r\n\r\n".to_owned()),
        (400, "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned()),
        (400, "POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n".to_owned()),
        (431, format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}")),
        (431, format!("GET /{long}")),
        (431, format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(200))),
        (400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        (408, "GET / HTTP/1.1\r\nHost: loc".to_owned()),
    ];
    for (expected, text) in cases {
        let (status, head, body) = say(server.address(), &text);
        let shown = &text[..text.len().min(60)];
        assert_eq!((status, body["status"].as_u64()), (expected, Some(expected.into())), "{shown:?}: {head}");
        assert!(!body["error"].as_str().unwrap().is_empty());
        assert!(head.contains("content-type: application/json"), "{head}");
    }
    // A request before it, over the same connection, is answered as usual.
    let both = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n";
    let mut answers = String::new();
    let _ = sent(&server, both).read_to_string(&mut answers);
    let (first, second) = answers.split_at(answers.find("HTTP/1.1 400").unwrap());
    assert!(first.starts_with("HTTP/1.1 200") && first.ends_with("\r\n\r\n0"), "{first}");
    assert!(second.starts_with("HTTP/1.1 400") && second.ends_with("\"status\":400}"), "{second}");
}

#[test]
fn an_idle_client_loses_its_connection_and_a_slow_request_gets_408() {
    let (routes, ..) = gated();
    let limits = ListenLimits {
        header: Duration::from_millis(50),
        request: Duration::from_millis(50),
        ..ListenLimits::default()
    };
    let server = listen(limits, routes);
    let begun = Instant::now();
    for text in ["", "GET / HT", "PRI * HTTP/2.0\r\n", "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        // The last one is answered, and then says nothing more.
        let _ = say(server.address(), text);
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    let (status, _, body) = say(server.address(), &request("GET", "/wait", LOCAL, ""));
    assert_eq!((status, body["status"].as_u64()), (408, Some(408)));
}

#[test]
fn a_shutdown_waits_for_open_requests_and_accepts_no_new_ones() {
    let (routes, reached, open) = gated();
    let server = listen(ListenLimits::default(), routes);
    let address = server.address();
    let idle = std::net::TcpStream::connect(address).unwrap();
    let asking = std::thread::spawn(move || say(address, &request("GET", "/wait", LOCAL, "")));
    wait_for(&reached);
    let ending = std::thread::spawn(move || drop(server));
    // No new connection is accepted; then the open request is answered.
    while std::net::TcpStream::connect(address).is_ok() {}
    open.notify_one();
    assert_eq!(asking.join().unwrap().0, 200);
    let begun = Instant::now();
    ending.join().unwrap();
    assert!(begun.elapsed() < Duration::from_millis(1500), "idle ones are not waited for");
    drop(idle);
}

#[test]
fn no_client_delays_a_shutdown_for_long() {
    let (routes, reached, _) = gated();
    let limits = ListenLimits { grace: Duration::from_millis(50), ..ListenLimits::default() };
    let server = listen(limits, routes);
    let address = server.address();
    let asking = std::thread::spawn(move || say(address, &request("GET", "/wait", LOCAL, "")));
    wait_for(&reached);
    let begun = Instant::now();
    drop(server);
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(asking.join().unwrap().0, 0, "it was never answered");
}

#[test]
fn a_body_beyond_the_limit_gets_413_in_json() {
    let server = listen(ListenLimits::default(), counting());
    let json = ["Host: localhost", "Content-Type: application/json"];
    let send = |many: usize| say(server.address(), &request("POST", "/", &json, &"1".repeat(many)));
    assert_eq!(send(4 << 20).0, 200);
    let (status, _, body) = send((4 << 20) + 1);
    assert_eq!((status, body["status"].as_u64()), (413, Some(413)));
    let chunked = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (status, _, body) = say(server.address(), &format!("{chunked}zz\r\n"));
    assert_eq!((status, body["status"].as_u64()), (400, Some(400)));
    let large = format!("{chunked}{:x}\r\n{}", 5 << 20, "1".repeat(5 << 20));
    assert_eq!(say(server.address(), &large).0, 413);
}
