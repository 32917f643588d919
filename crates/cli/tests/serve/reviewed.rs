//! Regression tests from reviews: endless conditions, another protocol, results of unknown attempts, ids that
//! cannot be part of a URL, logs that are not read.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Connection, failure, send_result, success};
use crate::history::{assert_contains, assert_fields, outcomes, text};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, deliver, one_step, provider, retries, start_flows, step};

#[test]
fn a_condition_that_would_run_forever_fails_its_step_at_once() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/b", &[Reply::x(1)]);
    let served = RunningServer::on(&sandbox);
    let attributes = json!({"l": {"role": "required"}, "y": {"role": "output"}});
    let script = "l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d >= 0))))";
    let more = json!({"predicate": {"language": "cel", "script": script}});
    served.register(&step(&handlers, "a", &attributes, &more));
    served.register(&provider(&handlers, "b", &json!({})));
    let numbers: Vec<u32> = (0..60).collect();
    let began = Instant::now();
    served.start_flow("endless", "a", &json!({"l": numbers}));
    served.run_flow("other", "b", &json!({}), "completed");
    let flow = served.wait_for_end("endless", "failed");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_contains(&flow["error"], "could take too long to evaluate");
    assert_eq!(handlers.all().len(), 1);
}

#[test]
fn http_2_is_refused() {
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    let mut stream = TcpStream::connect(served.address()).unwrap();
    let patience = Some(Duration::from_secs(5));
    stream.set_read_timeout(patience).unwrap();
    // The preface of HTTP/2 and an empty SETTINGS frame.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).unwrap();
    let mut answer = Vec::new();
    // A server that closes before it has read everything may reset the connection.
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "it stays open");
    }
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
    served.get("/health").is(200);
}

#[test]
fn a_result_of_a_round_before_is_ignored_and_a_wrong_one_is_refused() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let served = RunningServer::on(&sandbox);
    let work = retries(1);
    served.register(&async_step(&handlers, "a", &work));
    served.start_flow("f", "a", &json!({}));
    let address = |n: usize| {
        let token = handlers.wait_for("/a", n)[n - 1].token().to_owned();
        format!("http://{}/webhook/f/a/{token}", served.address())
    };
    let first = address(1);
    deliver(&first, failure("no"));
    served.wait_for_end("f", "failed");
    served.wait_for_deactivation("f");
    let redriven = sandbox
        .spawn_with(&["dlq", "redrive", "f", "--yes", "--json"], &[("UNDAUNTED_LISTEN", "127.0.0.1:0")]);
    let second = address(2);
    assert_ne!(first, second);
    let is_old = |flow: &Value| {
        send_result(&first, success(&json!({"x": 1}))).unwrap().is(200);
        send_result(&format!("{first}0"), success(&json!({"x": 1}))).unwrap().refused(404);
        assert_eq!(served.flow("f"), *flow);
    };
    Sandbox::eventually("an accepted call", || {
        let last = sandbox.events_of("f").pop()?;
        (last["type"] == "attempt_accepted").then_some(())
    });
    is_old(&served.flow("f"));
    deliver(&second, success(&json!({"x": 2})));
    assert_eq!(redriven.wait().exits(0).json()["status"], "completed");
    let flow = served.completes_with_x("f", &json!(2));
    is_old(&flow);
    send_result(&second, success(&json!({"x": 3}))).unwrap().is(200);
    assert_eq!(served.flow("f"), flow);
    assert_eq!(outcomes(&sandbox.events_of("f")), ["refused", "success"]);
}

#[test]
fn a_step_that_answers_at_once_has_no_webhook() {
    let (_sandbox, handlers, served) = one_step(&[Reply::x(1).gated()], &json!({}));
    served.start_flow("f", "a", &json!({}));
    let token = handlers.wait_for_call("/a").token().to_owned();
    let address = format!("http://{}/webhook/f/a/{token}", served.address());
    let before = served.flow("f");
    send_result(&address, success(&json!({"x": 9}))).unwrap().refused(404);
    assert_eq!(served.flow("f"), before);
    handlers.open("/a");
    let flow = served.completes_with_x("f", &json!(1));
    send_result(&address, success(&json!({"x": 9}))).unwrap().refused(404);
    assert_eq!(served.flow("f"), flow);
}

#[test]
fn a_step_that_is_a_flow_has_no_webhook() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/inner", &[Reply::accepted()]);
    let served = RunningServer::on(&sandbox);
    served.register(&async_step(&handlers, "inner", &json!({})));
    served.register(&json!({
        "id": "outer", "name": "outer", "type": "flow", "flow": {"goals": ["inner"]},
        "attributes": {"x": {"role": "output"}},
    }));
    served.start_flow("f", "outer", &json!({}));
    let call = handlers.wait_for_call("/inner").clone();
    let metadata = call.json()["metadata"].clone();
    assert_fields!(metadata, {"parent_flow_id": "f", "parent_step_id": "outer"});
    let parent = text(&metadata["parent_work_item_token"]);
    let inner = text(&metadata["flow_id"]);
    let address = format!("http://{}/webhook/f/outer/{parent}", served.address());
    let state = || [served.flow("f"), served.flow(&inner)];
    Sandbox::wait_until("two waiting flows", || {
        let waits = |flow: &str| {
            let events = sandbox.events_of(flow);
            events.iter().any(|event| event["type"] == "attempt_accepted")
        };
        waits("f") && waits(&inner)
    });
    let before = state();
    let forged = success(&json!({"x": "forged"}));
    send_result(&address, &forged).unwrap().refused(404);
    assert_eq!(state(), before);
    send_result(&call.webhook_url(), success(&json!({"x": 5}))).unwrap().is(200);
    let flow = served.completes_with_x("f", &json!(5));
    served.wait_for_end(&inner, "completed");
    send_result(&address, &forged).unwrap().refused(404);
    assert_eq!(served.flow("f"), flow);
}

#[test]
fn an_id_that_is_no_part_of_an_address_and_an_address_with_a_password_are_refused() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1)]);
    let served = RunningServer::on(&sandbox);
    let long = "x".repeat(300);
    for id in ["a?b", "a#b", "a/b", "a%2Fb", "..", ".", "a b", &long] {
        let mut step = provider(&handlers, "a", &json!({}));
        step["id"] = json!(id);
        let error = served.post("/engine/step", &step).refused(400);
        assert!(error.contains("id"), "{id}: {error}");
    }
    let secret = "http://user:pa55word@";
    for key in ["endpoint", "health_check"] {
        let mut step = provider(&handlers, "a", &json!({}));
        step["http"][key] = json!(handlers.url("/a").replace("http://", secret));
        let error = served.post("/engine/step", &step).refused(400);
        assert!(error.contains("password"), "{key}: {error}");
    }
    assert_eq!(served.get("/engine/step").is(200)["count"], 0);
    assert!(!served.output().contains("pa55word"));
    served.register(&provider(&handlers, "a.b-c_d+e", &json!({})));
}

#[test]
fn a_maximum_wait_of_zero_stops_the_start_and_names_the_variable() {
    let sandbox = Sandbox::new();
    let local = ["--listen", "127.0.0.1:0"];
    for variables in [
        &[("RETRY_MAX_BACKOFF", "0")][..],
        &[("RETRY_MAX_BACKOFF", "0"), ("RETRY_BACKOFF", "0")],
        &[("RETRY_MAX_BACKOFF", "10"), ("RETRY_BACKOFF", "20")],
    ] {
        let ended = RunningServer::refused(&sandbox, &local, variables).err_contains("RETRY_MAX_BACKOFF");
        assert_eq!(ended.out, "");
    }
}

#[test]
fn a_token_is_the_same_with_and_without_the_end_of_its_line() {
    let sandbox = Sandbox::new();
    let local = ["--listen", "127.0.0.1:0"];
    let served = RunningServer::with(&sandbox, &local, &[("UNDAUNTED_TOKEN", " t0ken-of-a-line \n")]);
    let mut connection = Connection::open(served.address());
    let right = ["Host: localhost", "Authorization: Bearer t0ken-of-a-line"];
    connection.send("GET", "/engine", &right, b"").unwrap().is(200);
    served.get("/engine").refused(401);
}

#[test]
fn a_log_that_is_not_read_delays_no_flow() {
    const FLOWS: usize = 2000;
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1)]);
    let args = ["serve", "--listen", "127.0.0.1:0", "--log-level", "debug"];
    let mut command = sandbox.program(&args, &[]);
    let stdout = sandbox.path("stdout");
    command.stdout(std::fs::File::create(&stdout).unwrap()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let address = Sandbox::eventually("a server that listens", || {
        let stdout = std::fs::read_to_string(&stdout).unwrap();
        let stdout = stdout.strip_prefix("listening on http://")?;
        Some(stdout.strip_suffix('\n')?.parse().unwrap())
    });
    let ask = |path: &str, body: &Value| {
        let mut connection = Connection::open(address);
        connection.ask("POST", path, &body.to_string()).unwrap()
    };
    ask("/engine/step", &provider(&handlers, "a", &json!({}))).is(201);
    start_flows(&[address], FLOWS, |n| json!({"id": format!("f{n}"), "goals": ["a"]}));
    Sandbox::wait_until("the end of all flows", || {
        let query = json!({"statuses": ["completed"], "limit": 1});
        let page = ask("/engine/flow/query", &query).is(200);
        page["total"] == FLOWS
    });
    // The server can also shut down, and the log that fits is in the pipe.
    let pid = i32::try_from(server.id()).unwrap();
    crate::processes::signal(pid, "TERM");
    let status = Sandbox::eventually("the end", || server.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    let mut log = Vec::new();
    server.stderr.take().unwrap().read_to_end(&mut log).unwrap();
    assert!(log.len() > 60_000, "the pipe was never full: {}", log.len());
}
