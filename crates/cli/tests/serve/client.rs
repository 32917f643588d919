//! Clients: plain HTTP and web sockets, over plain sockets.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a request was answered with.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Status line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The JSON of it, if it has this status.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// The error of it: every refusal has the same shape.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> String {
        let body = self.is(status);
        assert_eq!(self.header("content-type"), Some("application/json"));
        let error = body["error"].as_str().unwrap().to_owned();
        assert_eq!(body, json!({"error": error, "status": status}));
        assert!(!error.is_empty());
        error
    }
}

/// A connection, for one request after the other.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::try_to(address).unwrap()
    }

    /// Nothing if nobody is there.
    pub(crate) fn try_to(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Some(Self(BufReader::new(stream)))
    }

    /// Sends bytes as they are; whoever refuses early need not take them all.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// An answer; nothing if the connection was closed instead.
    pub(crate) fn hear(&mut self) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_ascii_lowercase();
        let mut answer = Answer { status: head.split(' ').nth(1)?.parse().ok()?, head, body: Vec::new() };
        let length = answer.header("content-length").unwrap_or("0");
        answer.body = vec![0; length.parse().ok()?];
        self.0.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }

    /// Waits so long for the other side to close it.
    pub(crate) fn is_closed(&mut self, time: Duration) -> bool {
        self.0.get_ref().set_read_timeout(Some(time)).unwrap();
        match self.0.fill_buf() {
            Ok(read) => read.is_empty(),
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    /// Sends a request with these headers; nothing if there was no answer.
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Option<Answer> {
        let headers: String = headers.iter().flat_map(|it| [*it, "\r\n"]).collect();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.say(&[head.as_bytes(), body].concat());
        self.hear()
    }

    /// Sends a request as clients do.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<Answer> {
        let headers = ["Host: localhost", "Content-Type: application/json"];
        self.send(method, path, &headers, body.as_bytes())
    }
}

/// Sends a result to the address of a webhook; nothing if nobody answers.
pub(crate) fn webhook(url: &str, body: &[u8]) -> Option<Answer> {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = Connection::try_to(host.parse().unwrap())?;
    let host = format!("Host: {host}");
    connection.send("POST", &format!("/{path}"), &[&host], body)
}

/// Somebody who follows events.
pub(crate) struct Follower(BufReader<TcpStream>);

/// What comes over a web socket.
#[derive(Debug)]
pub(crate) enum Heard {
    Text(Value),
    /// It was closed, for this reason.
    Closed(u16),
    Gone,
}

impl Follower {
    pub(crate) fn of(address: SocketAddr) -> Self {
        Self::with(address, &[]).unwrap_or_else(|answer| panic!("{answer:?}"))
    }

    /// The same with more headers; the answer, if it is another.
    pub(crate) fn with(address: SocketAddr, headers: &[&str]) -> Result<Self, Option<Answer>> {
        let mut connection = Connection::to(address);
        let headers: String = headers.iter().flat_map(|it| [*it, "\r\n"]).collect();
        let head = format!(
            "GET /engine/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
        );
        connection.say(head.as_bytes());
        match connection.hear() {
            Some(answer) if answer.status == 101 => Ok(Self(connection.0)),
            other => Err(other),
        }
    }

    /// Sends a frame of this kind.
    pub(crate) fn frame(&mut self, kind: u8, body: &[u8]) {
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
        drop(self.0.get_mut().write_all(&frame));
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.frame(1, message.to_string().as_bytes());
    }

    pub(crate) fn subscribe(&mut self, data: &Value) -> Value {
        self.say(&json!({"type": "subscribe", "data": data}));
        self.hear()
    }

    /// Follows a flow that is there.
    #[track_caller]
    pub(crate) fn follow(&mut self, flow: &str) -> Value {
        let answer = self.subscribe(&json!({"aggregate_id": ["flow", flow]}));
        assert_eq!(answer["type"], "subscribed", "{answer}");
        answer
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let [kind, length] = self.bytes()?;
        let length = match length & 0x7f {
            126 => u16::from_be_bytes(self.bytes()?).into(),
            127 => usize::try_from(u64::from_be_bytes(self.bytes()?)).unwrap(),
            length => length.into(),
        };
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        Some((kind & 0xf, body))
    }

    pub(crate) fn next(&mut self) -> Heard {
        loop {
            match self.read() {
                None => return Heard::Gone,
                Some((1, body)) => return Heard::Text(serde_json::from_slice(&body).unwrap()),
                Some((8, body)) => return Heard::Closed(u16::from_be_bytes([body[0], body[1]])),
                Some(_) => {}
            }
        }
    }

    #[track_caller]
    pub(crate) fn hear(&mut self) -> Value {
        match self.next() {
            Heard::Text(message) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Everything up to an event of this type.
    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut heard = vec![self.hear()];
        while heard.last().unwrap()["type"] != kind {
            heard.push(self.hear());
        }
        heard
    }
}
