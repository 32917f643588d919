//! A real step server for tests: it answers with scripted replies and records every request.
//!
//! Each path has a list of replies, one for each request; the last one repeats. A request that is not in
//! the record was never sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// Longer than any request takes on the slowest machine.
const DEADLINE: Duration = Duration::from_mins(1);

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Whole(u16, Vec<(String, String)>, Vec<u8>),
    /// Sent when the test opens the path.
    Gated(Box<Reply>),
    /// Sent one byte at a time.
    Trickled(Box<Reply>),
    /// The connection is closed without an answer.
    Close,
    CloseInHeaders,
    /// The connection is closed before the announced body.
    CloseAfterHeaders,
    StallInHeaders,
    StallInBody,
    /// Bytes that are not HTTP.
    Garbage,
    /// A body shorter than its `Content-Length`.
    Truncated,
    /// A chunked body without its last chunk.
    TruncatedPieces,
    /// A status and the size of the body.
    Huge(u16, usize),
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self::text(status, &format!("answered {status}"))
    }

    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::Whole(status, Vec::new(), body.into())
    }

    pub(crate) fn bytes(body: &[u8]) -> Self {
        Self::Whole(200, Vec::new(), body.into())
    }

    /// A success in the step protocol.
    pub(crate) fn outputs(outputs: &Value) -> Self {
        let body = serde_json::json!({"success": true, "outputs": outputs});
        Self::text(200, &body.to_string())
    }

    /// A success without outputs.
    pub(crate) fn done() -> Self {
        Self::outputs(&serde_json::json!({}))
    }

    /// A success with the output `x`.
    pub(crate) fn x(value: impl Into<Value>) -> Self {
        Self::outputs(&serde_json::json!({"x": value.into()}))
    }

    /// A failure in the step protocol.
    pub(crate) fn refusal(error: &str) -> Self {
        let body = serde_json::json!({"success": false, "error": error});
        Self::text(200, &body.to_string())
    }

    /// An async step accepts the call; its result comes by webhook.
    pub(crate) fn accepted() -> Self {
        Self::text(200, r#"{"success":true}"#)
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        let Self::Whole(status, mut headers, body) = self else {
            panic!("{self:?} has no headers");
        };
        headers.push((name.to_owned(), value.to_owned()));
        Self::Whole(status, headers, body)
    }

    pub(crate) fn gated(self) -> Self {
        Self::Gated(Box::new(self))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: SystemTime,
    /// The number of its connection, from 1.
    pub(crate) connection: u64,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn token(&self) -> &str {
        self.header("Idempotency-Key").unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// An argument of a step call.
    pub(crate) fn argument(&self, name: &str) -> Value {
        self.arguments()[name].clone()
    }

    pub(crate) fn arguments(&self) -> Value {
        self.json()["arguments"].clone()
    }

    /// Where an async step sends its result.
    pub(crate) fn webhook_url(&self) -> String {
        self.json()["metadata"]["webhook_url"].as_str().unwrap().to_owned()
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }
}

type Respond = Arc<dyn Fn(&ReceivedRequest) -> Reply + Send + Sync>;

#[derive(Default)]
struct ReplyScript {
    replies: BTreeMap<String, Vec<Reply>>,
    responders: BTreeMap<String, Respond>,
    counts: BTreeMap<String, usize>,
    requests: Vec<ReceivedRequest>,
    open: BTreeSet<String>,
    /// The most requests that were being answered at once.
    busiest: usize,
    busy: usize,
    closed: bool,
}

#[derive(Default)]
struct ScriptedServerState {
    script: Mutex<ReplyScript>,
    changed: Condvar,
}

impl ScriptedServerState {
    fn script(&self) -> MutexGuard<'_, ReplyScript> {
        self.script.lock().unwrap()
    }
}

pub(crate) struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<ScriptedServerState>,
}

impl ScriptedServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(ScriptedServerState::default());
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for (number, stream) in (1_u64..).zip(listener.incoming()) {
                if theirs.script().closed {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&theirs)) else {
                    continue;
                };
                thread::spawn(move || serve(&stream, number, &shared));
            }
        });
        Self { address, shared }
    }

    /// Sets the replies of a path.
    pub(crate) fn on(self, path: &str, replies: &[Reply]) -> Self {
        self.answers(path, replies);
        self
    }

    /// Replaces the replies of a path while the server is in use.
    pub(crate) fn answers(&self, path: &str, replies: &[Reply]) {
        let mut script = self.shared.script();
        script.counts.remove(path);
        script.replies.insert(path.to_owned(), replies.to_vec());
    }

    /// Computes the replies of a path from its requests.
    pub(crate) fn by(
        self,
        path: &str,
        respond: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let mut script = self.shared.script();
        script.responders.insert(path.to_owned(), Arc::new(respond));
        drop(script);
        self
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn origin(&self) -> String {
        self.url("")
    }

    /// Sends the gated replies of a path, also those of later requests.
    pub(crate) fn open(&self, path: &str) {
        self.shared.script().open.insert(path.to_owned());
        self.shared.changed.notify_all();
    }

    /// All requests, in order.
    pub(crate) fn all(&self) -> Vec<ReceivedRequest> {
        self.shared.script().requests.clone()
    }

    /// The requests to a path, in order.
    pub(crate) fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        let mut requests = self.all();
        requests.retain(|request| request.path() == path);
        requests
    }

    /// Waits until a path has received this many requests.
    pub(crate) fn wait_for(&self, path: &str, many: usize) -> Vec<ReceivedRequest> {
        let received = |script: &ReplyScript| {
            let requests = script.requests.iter();
            requests.filter(|request| request.path() == path).count()
        };
        let is_short = |script: &mut ReplyScript| received(script) < many;
        let waited = self.shared.changed.wait_timeout_while(self.shared.script(), DEADLINE, is_short);
        assert!(!waited.unwrap().1.timed_out(), "still waiting for request {many} to {path}");
        self.requests(path)
    }

    /// Waits for the first request to a path.
    pub(crate) fn wait_for_call(&self, path: &str) -> ReceivedRequest {
        self.wait_for(path, 1).remove(0)
    }

    /// The most requests that were being answered at once.
    pub(crate) fn busiest(&self) -> usize {
        self.shared.script().busiest
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.shared.script().closed = true;
        self.shared.changed.notify_all();
        // Wakes the thread that waits for the next connection.
        drop(TcpStream::connect(self.address));
    }
}

/// Reads a request; `None` if the client has closed the connection or does not speak HTTP.
fn read(reader: &mut BufReader<&TcpStream>, connection: u64) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim_start().to_owned()));
    }
    let mut request =
        ReceivedRequest { method, target, headers, body: Vec::new(), at: SystemTime::now(), connection };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn serve(stream: &TcpStream, connection: u64, shared: &ScriptedServerState) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader, connection) {
        let path = request.path().to_owned();
        let reply = record(shared, &request);
        let alive = answer(stream, &mut reader, &path, reply, shared);
        shared.script().busy -= 1;
        if alive.is_none() {
            break;
        }
    }
    drop(stream.shutdown(Shutdown::Both));
}

/// Records a request and returns its reply.
fn record(shared: &ScriptedServerState, request: &ReceivedRequest) -> Reply {
    let mut script = shared.script();
    script.busy += 1;
    script.busiest = script.busiest.max(script.busy);
    let path = request.path().to_owned();
    script.requests.push(request.clone());
    shared.changed.notify_all();
    if let Some(respond) = script.responders.get(&path).cloned() {
        drop(script);
        return respond(request);
    }
    let count = script.counts.entry(path.clone()).or_default();
    let number = *count;
    *count += 1;
    let replies = script.replies.get(&path);
    let reply = replies.and_then(|replies| replies.get(number).or(replies.last()));
    reply.cloned().unwrap_or_else(|| Reply::status(404))
}

/// Sends a reply; `None` if the connection cannot be used any more.
fn answer(
    mut stream: &TcpStream,
    reader: &mut BufReader<&TcpStream>,
    path: &str,
    reply: Reply,
    shared: &ScriptedServerState,
) -> Option<()> {
    match reply {
        Reply::Whole(..) => return stream.write_all(&encode(&reply)).ok(),
        Reply::Gated(reply) => {
            let mut script = shared.script();
            while !script.open.contains(path) && !script.closed {
                script = shared.changed.wait(script).unwrap();
            }
            drop(script);
            return answer(stream, reader, path, *reply, shared);
        }
        Reply::Trickled(reply) => {
            for byte in encode(&reply) {
                stream.write_all(&[byte]).ok()?;
            }
            return Some(());
        }
        Reply::Close => {}
        Reply::CloseInHeaders => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").ok()?,
        Reply::CloseAfterHeaders => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
            stream.write_all(head).ok()?;
        }
        Reply::StallInHeaders => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-").ok()?;
            drain(reader);
        }
        Reply::StallInBody => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal";
            stream.write_all(head).ok()?;
            drain(reader);
        }
        Reply::Garbage => stream.write_all(b"\x16\x03 what is this?\r\n\r\n").ok()?,
        Reply::Truncated => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it";
            stream.write_all(head).ok()?;
        }
        Reply::TruncatedPieces => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
            stream.write_all(head).ok()?;
        }
        Reply::Huge(status, many) => {
            let head = format!("HTTP/1.1 {status} Huge\r\nContent-Length: {many}\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            let piece = vec![b'x'; 1 << 16];
            let mut left = many;
            while left > 0 {
                let now = left.min(piece.len());
                stream.write_all(&piece[..now]).ok()?;
                left -= now;
            }
            return Some(());
        }
    }
    None
}

fn encode(reply: &Reply) -> Vec<u8> {
    let Reply::Whole(status, headers, body) = reply else {
        panic!("{reply:?} has no single encoding");
    };
    let mut text = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    if !(*status == 204 || *status == 304) {
        let length = body.len().to_string();
        text.extend(["Content-Length: ", &length, "\r\n"]);
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend(body);
    bytes
}

/// Waits until the client closes the connection.
fn drain(reader: &mut BufReader<&TcpStream>) {
    let mut rest = [0; 64];
    while reader.read(&mut rest).is_ok_and(|read| read > 0) {}
}
