//! Requests that once did harm: conditions without end, another protocol, results nobody waits for,
//! addresses that cannot be written, logs that nobody reads.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Connection, webhook};
use crate::history::{outcomes, text};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, says, step};
use crate::webhooks::{done, later, taken_on, url};
use crate::world::World;

#[test]
fn a_condition_that_would_take_for_ever_fails_its_step_at_once() {
    let world = World::new();
    let handlers = StepServer::start().on("/b", &[Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    let attributes = json!({"l": {"role": "required"}, "y": {"role": "output"}});
    let script = "l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d >= 0))))";
    let more = json!({"predicate": {"language": "cel", "script": script}});
    served.register(&step(&handlers, "a", &attributes, &more));
    served.register(&giver(&handlers, "b", &json!({})));
    let numbers: Vec<u32> = (0..60).collect();
    let began = Instant::now();
    served.begin("endless", "a", &json!({"l": numbers}));
    served.begin("other", "b", &json!({}));
    served.ends("other", "completed");
    let flow = served.ends("endless", "failed");
    assert!(began.elapsed() < Duration::from_secs(10));
    says(&flow["error"], "too much to look at");
    assert_eq!(handlers.all().len(), 1);
}

#[test]
fn another_version_of_the_protocol_is_not_spoken() {
    let world = World::new();
    let served = Served::on(&world);
    let mut stream = TcpStream::connect(served.address()).unwrap();
    let patience = Some(Duration::from_secs(5));
    stream.set_read_timeout(patience).unwrap();
    // What every connection of version 2 begins with, and its first frame: no settings.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).unwrap();
    let mut heard = Vec::new();
    // Whoever closes before all was read may do so with an error.
    if let Err(error) = stream.read_to_end(&mut heard) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "it stays open");
    }
    assert!(heard.is_empty() || heard.starts_with(b"HTTP/1.1 4"), "{heard:?}");
    served.get("/health").is(200);
}

#[test]
fn a_result_of_a_round_before_is_ignored_and_a_wrong_one_is_refused() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[taken_on()]);
    let served = Served::on(&world);
    let work = json!({"max_retries": 1, "backoff": 1});
    served.register(&later(&handlers, "a", &work));
    served.begin("f", "a", &json!({}));
    let address = |n: usize| {
        let token = handlers.wait_for("/a", n)[n - 1].token().to_owned();
        format!("http://{}/webhook/f/a/{token}", served.address())
    };
    let fails = json!({"success": false, "error": "no"}).to_string();
    let first = address(1);
    World::eventually("a result that is taken", || {
        webhook(&first, fails.as_bytes()).filter(|answer| answer.status == 200)
    });
    served.ends("f", "failed");
    served.deactivated("f");
    let redriven =
        world.spawn_with(&["dlq", "redrive", "f", "--yes", "--json"], &[("UNDAUNTED_LISTEN", "127.0.0.1:0")]);
    let second = address(2);
    assert_ne!(first, second);
    let is_old = |flow: &Value| {
        webhook(&first, &done(&json!({"x": 1}))).unwrap().is(200);
        webhook(&format!("{first}0"), &done(&json!({"x": 1}))).unwrap().refused(404);
        assert_eq!(served.flow("f"), *flow);
    };
    World::eventually("an accepted call", || {
        let last = world.events_of("f").pop()?;
        (last["type"] == "attempt_accepted").then_some(())
    });
    is_old(&served.flow("f"));
    World::eventually("a result that is taken", || {
        webhook(&second, &done(&json!({"x": 2}))).filter(|answer| answer.status == 200)
    });
    assert_eq!(redriven.wait().exits(0).json()["status"], "completed");
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 2);
    is_old(&flow);
    webhook(&second, &done(&json!({"x": 3}))).unwrap().is(200);
    assert_eq!(served.flow("f"), flow);
    assert_eq!(outcomes(&world.events_of("f")), ["refused", "success"]);
}

#[test]
fn a_step_that_answers_at_once_has_no_webhook() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1})).gated()]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({})));
    served.begin("f", "a", &json!({}));
    let token = handlers.wait_for("/a", 1)[0].token().to_owned();
    let address = format!("http://{}/webhook/f/a/{token}", served.address());
    let before = served.flow("f");
    webhook(&address, &done(&json!({"x": 9}))).unwrap().refused(404);
    assert_eq!(served.flow("f"), before);
    handlers.open("/a");
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 1);
    webhook(&address, &done(&json!({"x": 9}))).unwrap().refused(404);
    assert_eq!(served.flow("f"), flow);
}

#[test]
fn a_step_that_is_a_flow_has_no_webhook() {
    let world = World::new();
    let handlers = StepServer::start().on("/inner", &[taken_on()]);
    let served = Served::on(&world);
    served.register(&later(&handlers, "inner", &json!({})));
    served.register(&json!({
        "id": "outer", "name": "outer", "type": "flow", "flow": {"goals": ["inner"]},
        "attributes": {"x": {"role": "output"}},
    }));
    served.begin("f", "outer", &json!({}));
    let call = handlers.wait_for("/inner", 1)[0].clone();
    let metadata = call.json()["metadata"].clone();
    assert_eq!(metadata["parent_flow_id"], "f");
    assert_eq!(metadata["parent_step_id"], "outer");
    let parent = text(&metadata["parent_work_item_token"]);
    let inner = text(&metadata["flow_id"]);
    let address = format!("http://{}/webhook/f/outer/{parent}", served.address());
    let state = || [served.flow("f"), served.flow(&inner)];
    World::eventually("both wait", || {
        let waits = |flow: &str| {
            let events = world.events_of(flow);
            events.iter().any(|event| event["type"] == "attempt_accepted")
        };
        (waits("f") && waits(&inner)).then_some(())
    });
    let before = state();
    let forged = done(&json!({"x": "forged"}));
    webhook(&address, &forged).unwrap().refused(404);
    assert_eq!(state(), before);
    webhook(&url(&call), &done(&json!({"x": 5}))).unwrap().is(200);
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 5);
    served.ends(&inner, "completed");
    webhook(&address, &forged).unwrap().refused(404);
    assert_eq!(served.flow("f"), flow);
}

#[test]
fn an_id_that_is_no_part_of_an_address_and_an_address_with_a_password_are_refused() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    let long = "x".repeat(300);
    for id in ["a?b", "a#b", "a/b", "a%2Fb", "..", ".", "a b", &long] {
        let mut step = giver(&handlers, "a", &json!({}));
        step["id"] = json!(id);
        let error = served.post("/engine/step", &step).refused(400);
        assert!(error.contains("id"), "{id}: {error}");
    }
    let secret = "http://user:pa55word@";
    for key in ["endpoint", "health_check"] {
        let mut step = giver(&handlers, "a", &json!({}));
        step["http"][key] = json!(handlers.url("/a").replace("http://", secret));
        let error = served.post("/engine/step", &step).refused(400);
        assert!(error.contains("password"), "{key}: {error}");
    }
    assert_eq!(served.get("/engine/step").is(200)["count"], 0);
    assert!(!served.said().contains("pa55word"));
    served.register(&giver(&handlers, "a.b-c_d+e", &json!({})));
}

#[test]
fn a_longest_wait_of_nothing_stops_the_start_and_names_the_variable() {
    let world = World::new();
    let local = ["--listen", "127.0.0.1:0"];
    for variables in [
        &[("RETRY_MAX_BACKOFF", "0")][..],
        &[("RETRY_MAX_BACKOFF", "0"), ("RETRY_BACKOFF", "0")],
        &[("RETRY_MAX_BACKOFF", "10"), ("RETRY_BACKOFF", "20")],
    ] {
        let ended = Served::refused(&world, &local, variables).exits(2);
        assert!(ended.err.contains("RETRY_MAX_BACKOFF"), "{}", ended.err);
        assert_eq!(ended.out, "");
    }
}

#[test]
fn a_token_is_the_same_with_and_without_the_end_of_its_line() {
    let world = World::new();
    let local = ["--listen", "127.0.0.1:0"];
    let served = Served::with(&world, &local, &[("UNDAUNTED_TOKEN", " t0ken-of-a-line \n")]);
    let mut connection = Connection::to(served.address());
    let right = ["Host: localhost", "Authorization: Bearer t0ken-of-a-line"];
    connection.send("GET", "/engine", &right, b"").unwrap().is(200);
    served.get("/engine").refused(401);
}

#[test]
fn a_log_that_nobody_reads_holds_up_no_flow() {
    const FLOWS: usize = 2000;
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]);
    let args = ["serve", "--listen", "127.0.0.1:0", "--log-level", "debug"];
    let mut command = world.program(&args, &[]);
    let said = world.path("said");
    command.stdout(std::fs::File::create(&said).unwrap()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let address = World::eventually("a server that listens", || {
        let said = std::fs::read_to_string(&said).unwrap();
        let said = said.strip_prefix("listening at http://")?;
        Some(said.strip_suffix('\n')?.parse().unwrap())
    });
    let ask = |path: &str, body: &Value| {
        let mut connection = Connection::to(address);
        connection.ask("POST", path, &body.to_string()).unwrap()
    };
    ask("/engine/step", &giver(&handlers, "a", &json!({}))).is(201);
    thread::scope(|scope| {
        for part in 0..8 {
            scope.spawn(move || {
                let mut connection = Connection::to(address);
                for n in (part..FLOWS).step_by(8) {
                    let wanted = json!({"id": format!("f{n}"), "goals": ["a"]}).to_string();
                    let answer = connection.ask("POST", "/engine/flow", &wanted);
                    answer.unwrap().is(201);
                }
            });
        }
    });
    World::eventually("the end of all flows", || {
        let query = json!({"statuses": ["completed"], "limit": 1});
        let found = ask("/engine/flow/query", &query).is(200);
        (found["total"] == FLOWS).then_some(())
    });
    // It can leave as well, and what could be said is there to be read.
    let pid = i32::try_from(server.id()).unwrap();
    crate::processes::signal(pid, "TERM");
    let status = World::eventually("its end", || server.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    let mut log = Vec::new();
    server.stderr.take().unwrap().read_to_end(&mut log).unwrap();
    assert!(log.len() > 60_000, "the pipe was never full: {}", log.len());
}
