//! Steps that answer later: the call is taken on at once, and its result comes by webhook.
//!
//! The tests are the handlers of the steps: they send results when they like, as often as they like,
//! and look at what they are answered.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use crate::history::{all, is_lawful, one, outcomes};
use crate::http::is_exact;
use crate::http_server::{Reply, Request, StepServer};
use crate::processes::Running;
use crate::world::World;

/// Any port that is free: whoever is called is told which.
pub(crate) const ANYWHERE: (&str, &str) = ("UNDAUNTED_LISTEN", "127.0.0.1:0");

/// What a step answers that has taken a call on.
pub(crate) fn taken_on() -> Reply {
    Reply::text(200, r#"{"success":true}"#)
}

pub(crate) fn done(outputs: &Value) -> String {
    json!({"success": true, "outputs": outputs}).to_string()
}

/// An address that stays the same over kills, from where the system gives none away by itself.
pub(crate) fn address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 500).unwrap() * 20;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{}", 20_000 + (own + next) % 10_000);
        if TcpStream::connect(&address).is_err() {
            return address;
        }
    }
}

/// Sends a result: the status and the body of the answer; nothing if there was none.
pub(crate) fn post(url: &str, body: &[u8]) -> Option<(u16, Value)> {
    send("POST", url, body)
}

fn send(method: &str, url: &str, body: &[u8]) -> Option<(u16, Value)> {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).ok()?;
    let length = body.len();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    // One that is refused early may not be read to its end.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    Some((status, body))
}

/// Where the result of a call is to be sent.
pub(crate) fn url(call: &Request) -> String {
    let url = &call.json()["metadata"]["webhook_url"];
    url.as_str().unwrap().to_owned()
}

/// Sends a success until it is taken.
pub(crate) fn deliver(server: &StepServer, path: &str, outputs: &Value) {
    World::eventually("a result that is taken", || {
        let calls = server.requests(path);
        let (status, _) = post(&url(calls.last()?), done(outputs).as_bytes())?;
        (status == 200).then_some(())
    });
}

/// An async step `a` that gives `x`, and `b` that takes it. Retries follow at once.
pub(crate) fn flow(server: &StepServer, head: &str, http: &str, more: &str) -> World {
    World::of(&format!(
        "
mode: flow
goals: [b]
{head}
steps:
  - id: a
    type: async
    http: {{endpoint: '{}'{http}}}
    work_config: {{max_retries: 3, backoff: 1, parallelism: 3}}
    attributes: {{x: {{role: output}}{more}}}
  - id: b
    type: sync
    http: {{endpoint: '{}'}}
    work_config: {{max_retries: 3, backoff: 1}}
    attributes: {{x: {{role: required}}}}
",
        server.url("/a"),
        server.url("/b")
    ))
}

pub(crate) fn run(world: &World) -> Running {
    world.spawn_with(&["run", "w.yaml", "--json"], &[ANYWHERE])
}

/// A server whose step `a` takes calls on, and the flow that calls it.
pub(crate) fn usual() -> (StepServer, World) {
    let server = StepServer::start().on("/a", &[taken_on()]).on("/b", &[Reply::outputs(&json!({}))]);
    let world = flow(&server, "", "", "");
    (server, world)
}

#[test]
fn the_result_of_an_async_step_comes_by_webhook_and_the_flow_goes_on() {
    let (server, world) = usual();
    let engine = run(&world);
    let call = server.wait_for("/a", 1).remove(0);
    let until = world.event("attempt_accepted")["until"].clone();
    assert!(server.requests("/b").is_empty(), "nothing is known yet");
    let metadata = call.json()["metadata"].clone();
    let place = ["flow_id", "step_id", "receipt_token"].map(|key| metadata[key].as_str().unwrap());
    let end = format!("/webhook/{}", place.join("/"));
    assert!(url(&call).ends_with(&end), "{metadata}");
    let answer = post(&url(&call), done(&json!({"x": 7})).as_bytes());
    assert_eq!(answer, Some((200, json!({"success": true}))));
    let report = engine.wait().exits(0).json();
    assert_eq!((&report["attempts"], &report["retries"]), (&json!(2), &json!(0)));
    let given = server.requests("/b")[0].json();
    assert_eq!(given["arguments"], json!({"x": 7}));
    let events = world.events();
    is_lawful(&events);
    is_exact(&server, &events);
    let accepted = one(&events, "attempt_accepted");
    assert_eq!(accepted["until"], until);
    let day = 24 * 60 * 60 * 1000;
    let millis = crate::history::millis;
    assert_eq!(millis(&until) - millis(&accepted["at"]), day);
}

#[test]
fn a_result_that_is_a_failure_is_permanent() {
    let (server, world) = usual();
    let engine = run(&world);
    let call = server.wait_for("/a", 1).remove(0);
    world.event("attempt_accepted");
    let refusal = br#"{"success":false,"error":"out of stock"}"#;
    assert_eq!(post(&url(&call), refusal).unwrap().0, 200);
    let report = engine.wait().exits(1).json();
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("out of stock"), "{report}");
    assert_eq!((server.requests("/a").len(), server.all().len()), (1, 1));
    assert_eq!(one(&world.events(), "attempt_failed")["class"], "permanent");
}

#[test]
fn a_result_that_comes_twice_is_answered_200_and_ignored() {
    let (server, world) = usual();
    server.answers("/b", &[Reply::outputs(&json!({})).gated()]);
    let engine = run(&world);
    let call = server.wait_for("/a", 1).remove(0);
    let first = post(&url(&call), done(&json!({"x": 1})).as_bytes());
    assert_eq!(first.unwrap().0, 200);
    server.wait_for("/b", 1);
    for body in [done(&json!({"x": 2})), json!({"success": false}).to_string()] {
        assert_eq!(post(&url(&call), body.as_bytes()).unwrap().0, 200);
    }
    server.open("/b");
    engine.wait().exits(0);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["success", "success"]);
    assert_eq!(one(&events, "attribute_set")["value"], 1);
}

#[test]
fn what_nobody_waits_for_is_404_what_is_no_result_400_and_neither_changes_anything() {
    let (server, world) = usual();
    let engine = run(&world);
    let right = url(&server.wait_for("/a", 1)[0]);
    world.event("attempt_accepted");
    let (rest, token) = right.rsplit_once('/').unwrap();
    let flow = rest.strip_suffix("/a").unwrap();
    let (base, _) = flow.rsplit_once('/').unwrap();
    let good = done(&json!({"x": 0}));
    for wrong in [
        format!("{rest}/00000000-0000-0000-0000-000000000000"),
        format!("{rest}/x"),
        format!("{rest}/{token}x"),
        format!("{rest}/{}", token.to_uppercase()),
        format!("{flow}/b/{token}"),
        format!("{flow}/nobody/{token}"),
        format!("{base}/other/a/{token}"),
        format!("{right}/more"),
        format!("{rest}/%FF"),
        rest.to_owned(),
    ] {
        let (status, body) = post(&wrong, good.as_bytes()).unwrap();
        assert_eq!((status, &body["status"]), (404, &json!(404)), "{wrong}");
        assert!(body["error"].is_string(), "{body}");
    }
    for wrong in [
        &b""[..],
        b"done",
        b"[]",
        b"null",
        b"{}",
        br#"{"success":"true"}"#,
        br#"{"success":true,"outputs":[1]}"#,
        br#"{"success":true"#,
        b"\xff\xfe",
    ] {
        let (status, body) = post(&right, wrong).unwrap();
        assert_eq!((status, &body["status"]), (400, &json!(400)), "{body}");
        assert!(body["error"].is_string(), "{body}");
    }
    let (status, body) = send("GET", &right, b"").unwrap();
    assert_eq!((status, &body["status"]), (405, &json!(405)));
    assert_eq!(post(&right, good.as_bytes()).unwrap().0, 200);
    engine.wait().exits(0);
    is_lawful(&world.events());
}

#[test]
fn a_result_has_a_bound_and_one_below_it_is_taken_whole() {
    let (server, world) = usual();
    let engine = run(&world);
    let right = url(&server.wait_for("/a", 1)[0]);
    let large = |bytes: usize| done(&json!({"x": "x".repeat(bytes)}));
    // Whoever sends it may find the connection closed before it is all sent.
    if let Some((status, body)) = post(&right, large(16 << 20).as_bytes()) {
        assert_eq!((status, &body["status"]), (413, &json!(413)), "{body}");
    }
    assert_eq!(post(&right, large(1 << 20).as_bytes()).unwrap().0, 200);
    engine.wait().exits(0);
    let given = server.requests("/b")[0].json();
    assert_eq!(given["arguments"]["x"].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn a_result_may_come_before_the_call_was_answered() {
    // Whatever the answer is then.
    for late in [taken_on(), Reply::status(500), Reply::Close] {
        let (server, world) = usual();
        server.answers("/a", &[late.gated()]);
        let engine = run(&world);
        let call = server.wait_for("/a", 1).remove(0);
        let answer = post(&url(&call), done(&json!({"x": 3})).as_bytes());
        assert_eq!(answer.unwrap().0, 200);
        server.wait_for("/b", 1);
        server.open("/a");
        engine.wait().exits(0);
        let events = world.events();
        is_lawful(&events);
        is_exact(&server, &events);
        assert_eq!(outcomes(&events), ["success", "success"]);
        assert_eq!(all(&events, "attempt_accepted").len(), 0);
    }
}

#[test]
fn a_result_that_does_not_come_in_time_is_a_timeout_and_called_for_again_with_the_same_token() {
    let (server, _) = usual();
    let world = flow(&server, "", ", completion_timeout: 50", "");
    let patient = world.read("w.yaml").replace("max_retries: 3", "max_retries: -1");
    world.write("w.yaml", &patient);
    let mut engine = run(&world);
    let calls = server.wait_for("/a", 2);
    // One that comes between two attempts is to be sent again.
    World::eventually("the end", || {
        let _ = post(&url(&calls[0]), done(&json!({"x": 1})).as_bytes());
        engine.has_ended().then_some(())
    });
    engine.wait().exits(0);
    let events = world.events();
    is_lawful(&events);
    is_exact(&server, &events);
    assert_eq!(calls[0].json(), calls[1].json());
    let failed = all(&events, "attempt_failed");
    assert!(!failed.is_empty());
    for failure in failed {
        let kind = (&failure["cause"], &failure["class"]);
        assert_eq!(kind, (&json!("timeout"), &json!("transient")));
    }
}

#[test]
fn a_result_that_comes_while_the_next_call_is_waited_for_is_to_be_sent_again() {
    let (server, world) = usual();
    let slow = world.read("w.yaml").replace("backoff: 1,", "backoff: 1000,");
    world.write("w.yaml", &slow);
    server.answers("/a", &[Reply::status(503), taken_on()]);
    let engine = run(&world);
    let call = server.wait_for("/a", 1).remove(0);
    world.event("retry_scheduled");
    let (status, body) = post(&url(&call), done(&json!({"x": 1})).as_bytes()).unwrap();
    // Unless the machine was so slow that the next call was made.
    if status != 200 {
        assert_eq!((status, &body["status"]), (503, &json!(503)));
        deliver(&server, "/a", &json!({"x": 1}));
    }
    engine.wait().exits(0);
    is_lawful(&world.events());
}

#[test]
fn results_that_never_come_use_up_the_attempts() {
    let (server, _) = usual();
    let world = flow(&server, "", ", completion_timeout: 1", "");
    let report = run(&world).wait().exits(1).json();
    assert_eq!(report["reason"], "attempts");
    assert_eq!(server.requests("/a").len(), 4);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["timeout"; 4]);
    assert_eq!(all(&events, "attempt_accepted").len(), 4);
}

#[test]
fn a_call_that_is_not_taken_on_is_judged_as_any_other() {
    let (server, world) = usual();
    server.answers("/a", &[Reply::status(503), Reply::refusal("no")]);
    run(&world).wait().exits(1);
    let events = world.events();
    assert_eq!(outcomes(&events), ["status", "refused"]);
    assert_eq!(all(&events, "attempt_accepted").len(), 0);
}

#[test]
fn as_many_results_are_waited_for_as_may_run_and_they_come_in_any_order() {
    let (server, _) = usual();
    let world = flow(&server, "init: {n: [1, 2, 3, 4, 5]}", "", ", n: {role: required, for_each: true}");
    let engine = run(&world);
    let first = server.wait_for("/a", 3);
    world.wait_for_events("three taken on", |events| all(events, "attempt_accepted").len() == 3);
    assert_eq!(server.requests("/a").len(), 3, "each holds its place");
    let answer = |call: &Request| {
        let n = call.json()["arguments"]["n"].clone();
        let body = done(&json!({"x": n}));
        assert_eq!(post(&url(call), body.as_bytes()).unwrap().0, 200);
    };
    first.iter().rev().for_each(answer);
    server.wait_for("/a", 5)[3..].iter().rev().for_each(answer);
    engine.wait().exits(0);
    let given = server.requests("/b")[0].json();
    let expected: Vec<Value> = (1..=5).map(|n| json!({"n": n, "x": n})).collect();
    assert_eq!(given["arguments"]["x"], json!(expected));
    is_lawful(&world.events());
}

#[test]
fn the_address_of_the_call_is_the_public_one_if_there_is_one() {
    let (server, world) = usual();
    let own = address();
    let engine = world.spawn_with(
        &["run", "w.yaml", "--json"],
        &[("UNDAUNTED_LISTEN", &own), ("WEBHOOK_BASE_URL", "http://flows.test/behind/")],
    );
    let told = url(&server.wait_for("/a", 1)[0]);
    let path = told.strip_prefix("http://flows.test/behind/").unwrap();
    let really = format!("http://{own}/{path}");
    let body = done(&json!({"x": 1}));
    assert_eq!(post(&really, body.as_bytes()).unwrap().0, 200);
    engine.wait().exits(0);
}

#[test]
fn an_address_that_is_none_is_refused_by_the_name_of_its_variable() {
    for wrong in ["7070", "localhost", "127.0.0.1", "127.0.0.1:70000", "x y"] {
        let (server, world) = usual();
        let variables = [("UNDAUNTED_LISTEN", wrong)];
        let ended = world.call_with(&["run", "w.yaml"], &variables).exits(2);
        assert!(ended.err.contains("UNDAUNTED_LISTEN"), "{ended:?}");
        assert!(ended.err.contains(wrong), "{ended:?}");
        assert!(server.all().is_empty());
    }
}

#[test]
fn a_flow_whose_address_is_in_use_says_so_and_can_be_gone_on_with() {
    let (server, world) = usual();
    let own = address();
    let other = World::eventually(&own, || TcpListener::bind(&own).ok());
    let variables = [("UNDAUNTED_LISTEN", own.as_str())];
    let ended = world.call_with(&["run", "w.yaml"], &variables).exits(7);
    assert!(ended.err.contains(&own), "{ended:?}");
    assert!(ended.err.contains("UNDAUNTED_LISTEN"), "{ended:?}");
    assert!(server.all().is_empty());
    drop(other);
    let engine = world.spawn_with(&["resume", "@last", "--json"], &variables);
    deliver(&server, "/a", &json!({"x": 1}));
    engine.wait().exits(0);
    is_lawful(&world.events());
}
