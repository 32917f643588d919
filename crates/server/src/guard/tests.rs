//! Who is answered, asked over a real socket.

use std::net::{SocketAddr, TcpListener};

use axum::routing::any;

use super::*;
use crate::fixture::{request, say};
use crate::limits::ListenLimits;
use crate::listen::Listener;

fn listening(access: Access) -> Listener {
    let routes = Router::new().fallback(any(async || "{\"heard\":true}"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let routes = guarded(routes, access);
    Listener::start(listener, ListenLimits::default(), |_| routes).unwrap()
}

fn get(address: SocketAddr, headers: &[&str]) -> u16 {
    say(address, &request("GET", "/engine", headers, "")).0
}

#[test]
fn without_a_token_only_programs_on_this_machine_are_answered() {
    let server = listening(Access::local(Some("https://Flows.example.org:8443/x")));
    let address = server.address();
    for host in [
        "localhost",
        "LocalHost:7070",
        "127.0.0.1:1",
        "127.9.9.9",
        "[::1]:7070",
        "flows.example.org",
        "FLOWS.example.org:8443",
    ] {
        assert_eq!(get(address, &[&format!("Host: {host}")]), 200, "{host}");
    }
    for host in [
        "evil.example.org",
        "localhost.evil.org",
        "127.0.0.1.evil.org",
        "10.0.0.1",
        "[::2]",
        "::1",
        "",
        "user@",
    ] {
        assert_eq!(get(address, &[&format!("Host: {host}")]), 403, "{host}");
    }
    assert_eq!(get(address, &[]), 403);
    assert_eq!(get(address, &["Host: localhost", "Host: evil"]), 403);
    let absolute = "GET http://evil.org/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(say(address, absolute).0, 403);
    let page = ["Host: localhost", "Origin: http://localhost"];
    let (status, head, body) = say(address, &request("POST", "/webhook/a/b/c", &page, "{}"));
    assert_eq!((status, body["status"].as_u64()), (403, Some(403)));
    assert!(!head.contains("access-control"), "{head}");
}

#[test]
fn every_request_body_except_a_webhook_result_must_be_json() {
    let server = listening(Access::local(None));
    let send = |method: &str, path: &str, kind: &str, body: &str| {
        let headers = ["Host: localhost", kind];
        say(server.address(), &request(method, path, &headers, body)).0
    };
    let json = "Content-Type: Application/JSON; charset=utf-8";
    assert_eq!(send("POST", "/engine/flow", json, "{}"), 200);
    for kind in ["Content-Type: text/plain", "Content-Type: application/jsonp", "X: y"] {
        assert_eq!(send("POST", "/engine/flow", kind, "{}"), 415, "{kind}");
        assert_eq!(send("PUT", "/engine/step/a", kind, "{}"), 415, "{kind}");
        assert_eq!(send("POST", "/engine/flow", kind, ""), 200, "{kind}");
        assert_eq!(send("POST", "/webhook/a/b/c", kind, "{}"), 200, "{kind}");
    }
}

#[test]
fn with_a_token_every_client_that_sends_it_is_answered_under_any_host_name() {
    let server = listening(Access::by_token("s3cret".to_owned()));
    let address = server.address();
    let host = "Host: flows.example.org";
    for wrong in [
        "X: y",
        "Authorization: s3cret",
        "Authorization: Bearer",
        "Authorization: Bearer ",
        "Authorization: Bearer s3cre",
        "Authorization: Bearer s3cretx",
        "Authorization: Bearer S3cret",
        "Authorization: Basic s3cret",
    ] {
        let (status, head, body) = say(address, &request("GET", "/engine", &[host, wrong], ""));
        assert_eq!((status, body["status"].as_u64()), (401, Some(401)), "{wrong}");
        assert!(head.contains("www-authenticate: bearer"), "{head}");
    }
    assert_eq!(get(address, &[host, "Authorization: Bearer s3cret"]), 200);
    assert_eq!(get(address, &[host, "authorization: bearer s3cret"]), 200);
    let open = |method, path| say(address, &request(method, path, &[host], "")).0;
    for path in ["/health", "/ready"] {
        assert_eq!((open("GET", path), open("HEAD", path)), (200, 200));
    }
    assert_eq!(open("POST", "/webhook/a/b/c"), 200);
    assert_eq!(open("GET", "/webhook/a/b/c"), 401);
    assert_eq!(open("POST", "/health"), 401);
    assert_eq!(open("GET", "/metrics"), 401);
}

#[test]
fn a_page_of_an_allowed_origin_is_answered_and_its_browser_is_told_so() {
    let origins = || AllowedOrigins::of(["http://localhost:3000", "https://Flows.example.org/"]).unwrap();
    let local = listening(Access::local(None).with_origins(origins()));
    let closed = listening(Access::by_token("s3cret".to_owned()).with_origins(origins()));
    let asks = |origin: &str| format!("Origin: {origin}");
    let preflight = |server: &Listener, origin: &str| {
        let headers = [
            "Host: localhost",
            &asks(origin),
            "Access-Control-Request-Method: POST",
            "Access-Control-Request-Headers: content-type",
        ];
        say(server.address(), &request("OPTIONS", "/engine/flow", &headers, ""))
    };
    for origin in ["http://localhost:3000", "https://flows.example.org"] {
        for server in [&local, &closed] {
            let (status, head, _) = preflight(server, origin);
            assert_eq!(status, 204);
            for line in [
                &*format!("access-control-allow-origin: {origin}"),
                "access-control-allow-methods: get, head, post, put, delete",
                "access-control-allow-headers: authorization, content-type",
                "vary: origin",
            ] {
                assert!(head.contains(line), "no `{line}` in {head}");
            }
        }
        let page = ["Host: localhost", &asks(origin)];
        for (server, status) in [(&local, 200), (&closed, 401)] {
            // The page is to see errors, too.
            let (found, head, _) = say(server.address(), &request("GET", "/engine", &page, ""));
            assert_eq!(found, status);
            assert!(head.contains(&format!("access-control-allow-origin: {origin}")), "{head}");
        }
        let foreign = ["Host: evil.example.org", &asks(origin)];
        assert_eq!(say(local.address(), &request("GET", "/engine", &foreign, "")).0, 403);
    }
    for origin in
        ["http://localhost:3001", "https://localhost:3000", "null", "http://localhost:3000.evil.org", "*"]
    {
        for (server, status) in [(&local, 403), (&closed, 401)] {
            let (found, head, _) = preflight(server, origin);
            assert_eq!(found, status, "{origin}");
            assert!(!head.contains("access-control") && head.contains("vary: origin"), "{head}");
        }
        let page = ["Host: localhost", &asks(origin)];
        assert_eq!(say(local.address(), &request("GET", "/engine", &page, "")).0, 403, "{origin}");
        let twice = ["Host: localhost", "Origin: http://localhost:3000", &asks(origin)];
        assert_eq!(say(local.address(), &request("GET", "/engine", &twice, "")).0, 403, "{origin}");
    }
}

#[test]
fn an_address_that_other_machines_can_reach_needs_a_token() {
    let may = |access: &Access, address: &str| access.may_listen(address.parse().unwrap());
    let local = Access::local(None);
    for address in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(may(&local, address), Ok(()), "{address}");
    }
    for address in ["0.0.0.0", "192.168.1.1", "::"] {
        let why = may(&local, address).unwrap_err();
        assert!(why.contains(address) && why.contains("token"), "{why}");
    }
    let token = Access::by_token("x".to_owned());
    assert_eq!(may(&token, "0.0.0.0"), Ok(()));
    assert!(may(&Access::by_token(String::new()), "127.0.0.1").is_err());
    assert!(!format!("{:?}", Access::by_token("s3cret".to_owned())).contains("s3cret"));
}
