//! The bounds of a listener, reached over real sockets.

use std::io::{Read, Write};
use std::time::Instant;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::sync::Notify;

use super::*;
use crate::answer::said;
use crate::spoken::{hear, request, say};

const LOCAL: &[&str] = &["Host: localhost"];

fn listen(limits: ListenLimits, routes: Router) -> Listener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Listener::start(listener, limits, |_| routes).unwrap()
}

/// A route that answers when it is told to, and says that it was reached.
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
fn more_requests_than_there_is_room_for_are_told_to_come_again() {
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
fn connections_beyond_the_bound_wait_for_a_place() {
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
fn whoever_sends_nothing_loses_the_connection_and_what_takes_too_long_is_408() {
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
fn whoever_is_being_answered_at_the_end_is_waited_for_and_nobody_else() {
    let (routes, reached, open) = gated();
    let server = listen(ListenLimits::default(), routes);
    let address = server.address();
    let idle = std::net::TcpStream::connect(address).unwrap();
    let asking = std::thread::spawn(move || say(address, &request("GET", "/wait", LOCAL, "")));
    wait_for(&reached);
    let ending = std::thread::spawn(move || drop(server));
    // Nobody is let in any more; then the answer is given.
    while std::net::TcpStream::connect(address).is_ok() {}
    open.notify_one();
    assert_eq!(asking.join().unwrap().0, 200);
    let begun = Instant::now();
    ending.join().unwrap();
    assert!(begun.elapsed() < Duration::from_millis(1500), "idle ones are not waited for");
    drop(idle);
}

#[test]
fn nobody_keeps_the_end_waiting_for_long() {
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
fn a_body_beyond_its_bound_is_413_in_json() {
    let taken = async |body: Result<String, axum::extract::rejection::StringRejection>| match body {
        Ok(_) => said(StatusCode::OK, ""),
        Err(wrong) => said(wrong.status(), &wrong.body_text()),
    };
    let routes = Router::new().fallback(taken).layer(DefaultBodyLimit::max(10));
    let server = listen(ListenLimits::default(), routes);
    let send = |body: &str| say(server.address(), &request("POST", "/", LOCAL, body));
    assert_eq!(send("0123456789").0, 200);
    let (status, _, body) = send("0123456789x");
    assert_eq!((status, body["status"].as_u64()), (413, Some(413)));
}
