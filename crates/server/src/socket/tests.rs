//! Events as they happen, heard at the other end of a real socket.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use undaunted_engine::catalog::CatalogEvent;
use undaunted_policy::FailureCause;

use super::*;
use crate::fixture::{T0, TestFlow, TestServer, text};
use crate::limits::ListenLimits;
use crate::server::ServerSettings;

/// The other end of a socket.
struct Client(TcpStream);

/// What comes over it.
#[derive(Debug)]
enum Heard {
    Text(Value),
    Closed(u16),
    Gone,
}

impl Client {
    fn of(test_server: &TestServer) -> Self {
        Self::try_of(test_server).unwrap()
    }

    /// `None` if the server refuses it.
    fn try_of(test_server: &TestServer) -> Option<Self> {
        let mut stream = TcpStream::connect(test_server.server.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        let head = "GET /engine/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        answer.starts_with(b"HTTP/1.1 101").then(|| Self(stream))
    }

    fn frame(&mut self, kind: u8, body: &[u8]) {
        // Masked with zeros, which leaves it as it is.
        let mut frame = vec![0x80 | kind];
        match body.len() {
            length @ 0..126 => frame.push(0x80 | u8::try_from(length).unwrap()),
            length @ 126..65536 => {
                frame.push(0x80 | 0x7e);
                frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            length => {
                frame.push(0x80 | 0x7f);
                frame.extend(u64::try_from(length).unwrap().to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(body);
        // What is refused early need not be taken whole.
        let _ = self.0.write_all(&frame);
    }

    fn say(&mut self, message: &Value) {
        self.frame(1, message.to_string().as_bytes());
    }

    fn subscribe(&mut self, data: &Value) -> Value {
        self.say(&json!({"type": "subscribe", "data": data}));
        self.hear()
    }

    fn next(&mut self) -> Heard {
        loop {
            let mut head = [0; 2];
            if self.0.read_exact(&mut head).is_err() {
                return Heard::Gone;
            }
            let length = match head[1] & 0x7f {
                126 => {
                    let mut more = [0; 2];
                    self.0.read_exact(&mut more).unwrap();
                    u16::from_be_bytes(more).into()
                }
                127 => {
                    let mut more = [0; 8];
                    self.0.read_exact(&mut more).unwrap();
                    usize::try_from(u64::from_be_bytes(more)).unwrap()
                }
                length => length.into(),
            };
            let mut body = vec![0; length];
            self.0.read_exact(&mut body).unwrap();
            match head[0] & 0xf {
                1 => return Heard::Text(serde_json::from_slice(&body).unwrap()),
                8 => return Heard::Closed(u16::from_be_bytes([body[0], body[1]])),
                _ => {}
            }
        }
    }

    #[track_caller]
    fn hear(&mut self) -> Value {
        match self.next() {
            Heard::Text(message) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Everything up to an event of this type.
    #[track_caller]
    fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut heard = vec![self.hear()];
        while heard.last().unwrap()["type"] != kind {
            heard.push(self.hear());
        }
        heard
    }
}

fn flow(test_server: &TestServer, id: &str) -> TestFlow {
    let more = ", work_config: {max_retries: 1, backoff: 1000}";
    let steps = [("a", "x: {role: required}, y: {role: output}", more)];
    TestFlow::on(test_server.store.clone(), id, &text("a", "x: 1", &steps))
}

fn finish(test_flow: &mut TestFlow) {
    test_flow.start();
    test_flow.fail(0, 0, FailureCause::Status(503));
    test_flow.at(60_000).start();
    test_flow.done(0, 0, &json!({"y": 2}));
}

#[test]
fn a_flow_is_followed_from_its_state_on() {
    let test_server = TestServer::start();
    let mut test_flow = flow(&test_server, "wf-1");
    let mut client = Client::of(&test_server);
    let answer = client.subscribe(&json!({"aggregate_id": ["flow", "wf-1"]}));
    assert_eq!(answer["type"], "subscribed");
    assert_eq!(answer["id"], json!(["flow", "wf-1"]));
    assert_eq!(answer["data"]["status"], "active");
    let next = answer["sequence"].as_u64().unwrap();
    assert_eq!(next, test_flow.version.0 + 1);
    let before = test_flow.events().len();
    finish(&mut test_flow);
    // With or without a change signal.
    let heard = client.until("flow_completed");
    assert_eq!(heard, test_flow.events()[before..]);
    assert!(heard.iter().all(|event| event["sequence"].as_u64().unwrap() >= next));
}

#[test]
fn no_event_is_lost_or_sent_twice_whenever_a_client_subscribes() {
    let test_server = TestServer::start();
    let mut test_flow = flow(&test_server, "wf-1");
    let mut clients: Vec<Client> = (0..8).map(|_| Client::of(&test_server)).collect();
    let news = test_server.news.clone();
    let writing = std::thread::spawn(move || {
        test_flow.start();
        news.notify();
        test_flow.fail(0, 0, FailureCause::Status(503));
        news.notify();
        test_flow.at(60_000).start();
        test_flow.done(0, 0, &json!({"y": 2}));
        news.notify();
        test_flow
    });
    let heard: Vec<(u64, Vec<Value>)> = clients
        .iter_mut()
        .map(|client| {
            let answer = client.subscribe(&json!({"aggregate_id": ["flow", "wf-1"]}));
            let ended = answer["data"]["status"] == "completed";
            let events = if ended { Vec::new() } else { client.until("flow_completed") };
            (answer["sequence"].as_u64().unwrap(), events)
        })
        .collect();
    let all = writing.join().unwrap().events();
    for (next, events) in heard {
        let later = all.iter().filter(|it| it["sequence"].as_u64() >= Some(next));
        assert_eq!(events, later.cloned().collect::<Vec<_>>());
    }
}

#[test]
fn one_socket_follows_several_and_only_what_it_asked_for() {
    let test_server = TestServer::start();
    let mut scenes = [flow(&test_server, "one"), flow(&test_server, "two")];
    let mut client = Client::of(&test_server);
    let one = json!({"aggregate_id": ["flow", "one"], "event_types": ["flow_completed", "retry_scheduled"]});
    assert_eq!(client.subscribe(&one)["type"], "subscribed");
    // Asked for again, it takes the place of the first.
    assert_eq!(client.subscribe(&one)["type"], "subscribed");
    let two = json!({"aggregate_id": ["flow", "two"], "sub_id": "s", "event_types": ["step_completed"]});
    assert_eq!(client.subscribe(&two)["sub_id"], "s");
    let gone = json!({"aggregate_id": ["flow", "two"], "sub_id": "gone"});
    assert_eq!(client.subscribe(&gone)["sub_id"], "gone");
    client.say(&json!({"type": "unsubscribe", "data": {"sub_id": "gone"}}));
    // Behind this answer the wish before it was heard.
    client.say(&json!({"type": "nonsense"}));
    assert_eq!(client.hear()["type"], "error");
    scenes.iter_mut().for_each(finish);
    let mut kinds: Vec<String> = (0..3)
        .map(|_| client.hear())
        .map(|it| format!("{} {} {}", it["id"][1], it["type"], it["sub_id"]))
        .collect();
    kinds.sort();
    assert_eq!(
        kinds,
        [
            r#""one" "flow_completed" null"#,
            r#""one" "retry_scheduled" null"#,
            r#""two" "step_completed" "s""#,
        ]
    );
}

#[test]
fn the_catalog_is_followed_as_the_engine() {
    let test_server = TestServer::start();
    register(&test_server, "a");
    let mut client = Client::of(&test_server);
    let answer = client.subscribe(&json!({"aggregate_id": ["engine"]}));
    assert_eq!(answer["data"]["steps"], json!({"a": {"id": "a"}}));
    assert_eq!(answer["sequence"], 2);
    register(&test_server, "b");
    let event = client.hear();
    assert_eq!(event["type"], "step_registered");
    assert_eq!(event["data"]["step"]["id"], "b");
    assert_eq!(event["sequence"], 2);
    assert_eq!(event["id"], json!(["engine"]));
}

fn register(test_server: &TestServer, id: &str) {
    let (id, definition) = (id.to_owned(), json!({"id": id}).to_string());
    test_server.catalog.note(CatalogEvent::StepRegistered { id, definition });
    test_server.catalog.flush().unwrap();
}

fn activate(test_server: &TestServer, flow: &str) {
    let (flow, labels) = (flow.to_owned(), Vec::new());
    test_server.catalog.note(CatalogEvent::FlowActivated { flow, since: T0, labels, parent: None });
    test_server.catalog.flush().unwrap();
}

/// As the page of the original subscribes: the steps over one socket, their health and flows over another.
#[test]
fn the_catalog_and_the_partition_are_followed_on_their_own() {
    let test_server = TestServer::start();
    register(&test_server, "a");
    let [mut catalog, mut partition] = ["catalog", "partition"].map(|aggregate| {
        let mut client = Client::of(&test_server);
        let answer = client.subscribe(&json!({"aggregate_id": [aggregate], "event_types": null}));
        assert_eq!((&answer["type"], &answer["id"]), (&json!("subscribed"), &json!([aggregate])));
        assert_eq!(answer["data"].get("steps").is_some(), aggregate == "catalog");
        assert_eq!(answer["data"].get("health").is_some(), aggregate == "partition");
        (client, answer["data"].clone())
    });
    assert_eq!(catalog.1["steps"], json!({"a": {"id": "a"}}));
    assert_eq!(partition.1["health"], json!({"a": {"status": "unknown"}}));
    activate(&test_server, "f");
    register(&test_server, "b");
    activate(&test_server, "g");
    let told = |event: &Value| format!("{} {} {}", event["type"], event["id"], event["sequence"]);
    assert_eq!(told(&catalog.0.hear()), r#""step_registered" ["catalog"] 3"#);
    assert_eq!(told(&partition.0.hear()), r#""flow_activated" ["partition"] 2"#);
    assert_eq!(told(&partition.0.hear()), r#""flow_activated" ["partition"] 4"#);
}

#[test]
fn a_subscription_waits_for_a_flow_that_does_not_exist_yet() {
    let test_server = TestServer::start();
    let mut client = Client::of(&test_server);
    let answer = client.subscribe(&json!({"aggregate_id": ["flow", "wf-1"]}));
    let expected = json!({"type": "subscribed", "id": ["flow", "wf-1"], "data": {}, "sequence": 1});
    assert_eq!(answer, expected);
    let mut test_flow = flow(&test_server, "wf-1");
    finish(&mut test_flow);
    assert_eq!(client.until("flow_completed"), test_flow.events());
    // A job that is no flow never becomes one.
    let _list = TestFlow::on(test_server.store.clone(), "list", "commands: [{shell: 'true'}]");
    let answer = client.subscribe(&json!({"aggregate_id": ["flow", "list"]}));
    assert_eq!((&answer["type"], &answer["status"]), (&json!("error"), &json!(404)));
}

#[test]
fn a_subscription_without_an_aggregate_follows_everything() {
    let test_server = TestServer::start();
    let mut before = flow(&test_server, "before");
    let known = before.events().len();
    for asked in [json!({}), json!({"aggregate_id": null}), json!({"aggregate_id": [], "sub_id": "all"})] {
        let mut client = Client::of(&test_server);
        let answer = client.subscribe(&asked);
        assert_eq!((&answer["type"], &answer["id"]), (&json!("subscribed"), &json!([])));
        assert_eq!(answer["sub_id"], asked["sub_id"]);
    }
    let mut client = Client::of(&test_server);
    let answer = client.subscribe(&json!({}));
    assert_eq!(answer["data"]["steps"], json!({}));
    register(&test_server, "a");
    let _list = TestFlow::on(test_server.store.clone(), "list", "commands: [{shell: 'true'}]");
    let mut after = flow(&test_server, "after");
    for flow in [&mut before, &mut after] {
        finish(flow);
    }
    let expected = 1 + before.events().len() - known + after.events().len();
    let heard: Vec<Value> = (0..expected).map(|_| client.hear()).collect();
    let of = |id: &Value| heard.iter().filter(|it| it["id"] == *id).cloned().collect::<Vec<_>>();
    assert_eq!(of(&json!(["flow", "before"])), before.events()[known..]);
    assert_eq!(of(&json!(["flow", "after"])), after.events());
    assert_eq!(of(&json!(["catalog"]))[0]["type"], "step_registered");
}

#[test]
fn more_sockets_than_allowed_get_503_and_other_requests_are_answered() {
    let test_server = TestServer::with(ServerSettings {
        limits: ListenLimits { connections: 4, sockets: 2, ..ListenLimits::default() },
        ..ServerSettings::default()
    });
    let mut clients = vec![Client::of(&test_server), Client::of(&test_server)];
    assert!(Client::try_of(&test_server).is_none());
    assert_eq!(test_server.get("/health").0, 200);
    assert_eq!(test_server.get("/engine").0, 200);
    drop(clients.pop());
    while Client::try_of(&test_server).is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn an_invalid_message_gets_an_error_and_the_socket_stays_open() {
    let test_server = TestServer::start();
    let _scene = flow(&test_server, "wf-1");
    let mut client = Client::of(&test_server);
    for wrong in [
        json!(null),
        json!([]),
        json!({"type": "subscribe", "data": {"aggregate_id": "flow"}}),
        json!({"type": "subscribe", "data": {"aggregate_id": ["nodes"]}}),
        json!({"type": "subscribe", "data": {"aggregate_ids": [["flow", "wf-1"]]}}),
        json!({"type": "subscribe", "data": {"aggregate_id": ["flow"]}}),
        json!({"type": "subscribe", "data": {"aggregate_id": ["flow", ""]}}),
        json!({"type": "subscribe", "data": {"aggregate_id": ["engine"], "event_types": "x"}}),
        json!({"type": "subscribe", "data": {"aggregate_id": ["engine"], "sub_id": 1}}),
        json!({"type": "unsubscribe", "data": {}}),
    ] {
        client.say(&wrong);
        let answer = client.hear();
        assert_eq!((&answer["type"], &answer["status"]), (&json!("error"), &json!(400)), "{wrong}");
    }
    client.frame(1, b"{");
    assert_eq!(client.hear()["type"], "error");
    client.frame(2, b"{}");
    assert_eq!(client.hear()["type"], "error");
    let answer = client.subscribe(&json!({"aggregate_id": ["flow", "wf-1"]}));
    assert_eq!(answer["type"], "subscribed");
}

#[test]
fn an_oversized_message_closes_the_socket_and_so_does_a_shutdown() {
    let test_server = TestServer::start();
    let mut client = Client::of(&test_server);
    client.frame(1, &vec![b'x'; MAX_MESSAGE_BYTES + 1]);
    assert!(matches!(client.next(), Heard::Closed(1009) | Heard::Gone));
    let mut client = Client::of(&test_server);
    let answer = client.subscribe(&json!({"aggregate_id": ["engine"]}));
    assert_eq!(answer["type"], "subscribed");
    drop(test_server);
    assert!(matches!(client.next(), Heard::Closed(1001)));
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let test_server = TestServer::with(ServerSettings {
        limits: ListenLimits { sockets: 1, event: Duration::from_millis(100), ..ListenLimits::default() },
        ..ServerSettings::default()
    });
    let large = format!("x: {}", "x".repeat(1 << 20));
    let steps = [("a", "x: {role: required}, y: {role: output}", "")];
    let _scene = TestFlow::on(test_server.store.clone(), "wf-1", &text("a", &large, &steps));
    let mut client = Client::of(&test_server);
    // More than any buffer between the two can hold.
    for _ in 0..50 {
        client.say(&json!({"type": "subscribe", "data": {"aggregate_id": ["flow", "wf-1"]}}));
    }
    // Another client gets its permit, although the first has read nothing.
    let _other = loop {
        if let Some(other) = Client::try_of(&test_server) {
            break other;
        }
        std::thread::yield_now();
    };
    let mut heard = 0_usize;
    let mut piece = vec![0; 1 << 16];
    while let Ok(more @ 1..) = client.0.read(&mut piece) {
        heard += more;
    }
    assert!(heard < 50 << 20);
}
