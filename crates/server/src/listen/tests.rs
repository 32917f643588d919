//! The bounds of a listener, reached over real sockets.

use std::io::{Read, Write};
use std::time::Instant;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::sync::Notify;

use super::*;
use crate::answer::error_response;
use crate::fixture::{hear, request, say};

const LOCAL: &[&str] = &["Host: localhost"];

fn listen(limits: ListenLimits, routes: Router) -> Listener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Listener::start(listener, limits, |_| routes).unwrap()
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
fn connections_beyond_the_limit_wait_for_a_permit() {
    let (routes, reached, open) = gated();
    let limits = ListenLimits { connections: 1, ..ListenLimits::default() };
    let server = listen(limits, routes);
    let address = server.address();
    let first = std::thread::spawn(move || say(address, &request("GET", "/wait", LOCAL, "")));
    wait_for(&reached);
    let mut second = std::net::TcpStream::connect(address).unwrap();
    second.write_all(request("GET", "/now", LOCAL, "").as_bytes()).unwrap();
    second.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(second.read(&mut [0; 1]).is_err(), "it was let in");
    open.notify_one();
    assert_eq!(first.join().unwrap().0, 200);
    second.set_read_timeout(None).unwrap();
    assert_eq!(hear(&mut second).0, 200);
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
    let taken = async |body: Result<String, axum::extract::rejection::StringRejection>| match body {
        Ok(_) => error_response(StatusCode::OK, ""),
        Err(wrong) => error_response(wrong.status(), &wrong.body_text()),
    };
    let routes = Router::new().fallback(taken).layer(DefaultBodyLimit::max(10));
    let server = listen(ListenLimits::default(), routes);
    let send = |body: &str| say(server.address(), &request("POST", "/", LOCAL, body));
    assert_eq!(send("0123456789").0, 200);
    let (status, _, body) = send("0123456789x");
    assert_eq!((status, body["status"].as_u64()), (413, Some(413)));
}
