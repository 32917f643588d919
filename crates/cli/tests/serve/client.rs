//! Clients: plain HTTP and web sockets, over plain sockets.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct ReceivedAnswer {
    pub(crate) status: u16,
    /// Status line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl ReceivedAnswer {
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

    /// Asserts the status and returns the JSON body.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// Asserts that this is an error with this status and in the one shape of all errors. Returns its text.
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

/// A keep-alive connection.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::try_open(address).unwrap()
    }

    /// `None` if no server listens.
    pub(crate) fn try_open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Some(Self(BufReader::new(stream)))
    }

    /// Sends raw bytes. `false` if the server has closed the connection before reading them all.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// Reads an answer; `None` if the connection was closed instead.
    pub(crate) fn read_answer(&mut self) -> Option<ReceivedAnswer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_ascii_lowercase();
        let mut answer =
            ReceivedAnswer { status: head.split(' ').nth(1)?.parse().ok()?, head, body: Vec::new() };
        let length = answer.header("content-length").unwrap_or("0");
        answer.body = vec![0; length.parse().ok()?];
        self.0.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }

    /// The first line of an answer.
    pub(crate) fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok().map(|_| line)
    }

    /// Whether the server closes the connection within this time.
    pub(crate) fn is_closed(&mut self, time: Duration) -> bool {
        self.0.get_ref().set_read_timeout(Some(time)).unwrap();
        match self.0.fill_buf() {
            Ok(read) => read.is_empty(),
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    /// Sends a request with these headers; `None` if there was no answer.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> Option<ReceivedAnswer> {
        let headers: String = headers.iter().flat_map(|it| [*it, "\r\n"]).collect();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.send_bytes(&[head.as_bytes(), body].concat());
        self.read_answer()
    }

    /// Sends a JSON request with the usual headers.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<ReceivedAnswer> {
        let headers = ["Host: localhost", "Content-Type: application/json"];
        self.send(method, path, &headers, body.as_bytes())
    }
}

/// The result of an async step that has succeeded.
pub(crate) fn success(outputs: &Value) -> Vec<u8> {
    json!({"success": true, "outputs": outputs}).to_string().into_bytes()
}

/// The result of an async step that has failed.
pub(crate) fn failure(error: &str) -> Vec<u8> {
    json!({"success": false, "error": error}).to_string().into_bytes()
}

/// Sends a result to a webhook; `None` if no server answers.
pub(crate) fn send_result(url: &str, body: impl AsRef<[u8]>) -> Option<ReceivedAnswer> {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = Connection::try_open(host.parse().unwrap())?;
    let host = format!("Host: {host}");
    connection.send("POST", &format!("/{path}"), &[&host], body.as_ref())
}

/// An address that stays free over kills: its port lies outside the range of ephemeral ports.
pub(crate) fn free_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 1000).unwrap() * 20;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.0.0.1:{}", 10_000 + (own + next) % 20_000);
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// A web socket client of the event stream.
pub(crate) struct EventFollower(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) enum FollowerFrame {
    Text(Value),
    /// The close code.
    Closed(u16),
    Gone,
}

impl EventFollower {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, &[]).unwrap_or_else(|answer| panic!("{answer:?}"))
    }

    /// Connects with more headers; the error is the answer, unless that is 101.
    pub(crate) fn connect_with(
        address: SocketAddr,
        headers: &[&str],
    ) -> Result<Self, Option<ReceivedAnswer>> {
        let mut connection = Connection::open(address);
        let headers: String = headers.iter().flat_map(|it| [*it, "\r\n"]).collect();
        let head = format!(
            "GET /engine/ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
        );
        connection.send_bytes(head.as_bytes());
        match connection.read_answer() {
            Some(answer) if answer.status == 101 => Ok(Self(connection.0)),
            other => Err(other),
        }
    }

    /// Sends a frame with this opcode.
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
        // The server may refuse a frame before it has read it all.
        drop(self.0.get_mut().write_all(&frame));
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.frame(1, message.to_string().as_bytes());
    }

    pub(crate) fn subscribe(&mut self, data: &Value) -> Value {
        self.send(&json!({"type": "subscribe", "data": data}));
        self.read_message()
    }

    /// Subscribes to an existing flow.
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

    pub(crate) fn next(&mut self) -> FollowerFrame {
        loop {
            match self.read() {
                None => return FollowerFrame::Gone,
                Some((1, body)) => return FollowerFrame::Text(serde_json::from_slice(&body).unwrap()),
                Some((8, body)) => return FollowerFrame::Closed(u16::from_be_bytes([body[0], body[1]])),
                Some(_) => {}
            }
        }
    }

    #[track_caller]
    pub(crate) fn read_message(&mut self) -> Value {
        match self.next() {
            FollowerFrame::Text(message) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Reads all messages up to an event of this type.
    #[track_caller]
    pub(crate) fn read_until(&mut self, kind: &str) -> Vec<Value> {
        let mut messages = vec![self.read_message()];
        while messages.last().unwrap()["type"] != kind {
            messages.push(self.read_message());
        }
        messages
    }
}
