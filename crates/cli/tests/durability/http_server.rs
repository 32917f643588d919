//! A step server for tests: a real one, which answers as it was told and keeps its own record.
//!
//! What it answers is said for each path, request by request; the last answer goes for all that
//! follow. Its record is the outside world's: what is not in it was never sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::SystemTime;

use serde_json::Value;

use crate::world::World;

/// What a request is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A status, headers and a body.
    Whole(u16, Vec<(String, String)>, Vec<u8>),
    /// The same, when the test lets it go.
    Gated(Box<Reply>),
    /// The same, one byte at a time.
    Trickled(Box<Reply>),
    /// The connection is closed instead of an answer.
    Close,
    /// It is closed in the middle of the headers.
    CloseInHeaders,
    /// It is closed behind the headers, before a body that was announced.
    CloseAfterHeaders,
    /// The headers never end.
    StallInHeaders,
    /// The body never ends.
    StallInBody,
    /// Not HTTP at all.
    Garbage,
    /// A body that is shorter than it says.
    Truncated,
    /// A body in pieces, the last of which never comes.
    TruncatedPieces,
    /// A body of so many bytes, and its status.
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

    /// The success of a flow's step.
    pub(crate) fn outputs(outputs: &Value) -> Self {
        let body = serde_json::json!({"success": true, "outputs": outputs});
        Self::text(200, &body.to_string())
    }

    /// The refusal of a flow's step.
    pub(crate) fn refusal(error: &str) -> Self {
        let body = serde_json::json!({"success": false, "error": error});
        Self::text(200, &body.to_string())
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

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: SystemTime,
    /// Which connection it came on.
    pub(crate) connection: u64,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
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

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }
}

type Respond = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

#[derive(Default)]
struct Script {
    replies: BTreeMap<String, Vec<Reply>>,
    responders: BTreeMap<String, Respond>,
    counts: BTreeMap<String, usize>,
    requests: Vec<Request>,
    open: BTreeSet<String>,
    /// The most requests that were being answered at once.
    busiest: usize,
    busy: usize,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    script: Mutex<Script>,
    changed: Condvar,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }
}

pub(crate) struct StepServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl StepServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
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

    /// A path is answered so, request by request.
    pub(crate) fn on(self, path: &str, replies: &[Reply]) -> Self {
        self.answers(path, replies);
        self
    }

    /// The same, for a server that is in use.
    pub(crate) fn answers(&self, path: &str, replies: &[Reply]) {
        let mut script = self.shared.script();
        script.counts.remove(path);
        script.replies.insert(path.to_owned(), replies.to_vec());
    }

    /// A path is answered by what was sent to it.
    pub(crate) fn by(self, path: &str, respond: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
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

    /// Lets the answers of a path go, those to come too.
    pub(crate) fn open(&self, path: &str) {
        self.shared.script().open.insert(path.to_owned());
        self.shared.changed.notify_all();
    }

    /// Everything that was sent, in order.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.shared.script().requests.clone()
    }

    /// What was sent to a path, in order.
    pub(crate) fn requests(&self, path: &str) -> Vec<Request> {
        let mut requests = self.all();
        requests.retain(|request| request.path() == path);
        requests
    }

    /// Waits until a path has got so many requests.
    pub(crate) fn wait_for(&self, path: &str, many: usize) -> Vec<Request> {
        World::eventually(path, || {
            let requests = self.requests(path);
            (requests.len() >= many).then_some(requests)
        })
    }

    /// The most requests that were being answered at once.
    pub(crate) fn busiest(&self) -> usize {
        self.shared.script().busiest
    }
}

impl Drop for StepServer {
    fn drop(&mut self) {
        self.shared.script().closed = true;
        self.shared.changed.notify_all();
        // Whoever waits for the next connection looks again.
        drop(TcpStream::connect(self.address));
    }
}

/// Reads a request; nothing if the other side has gone, or does not speak HTTP.
fn read(reader: &mut BufReader<&TcpStream>, connection: u64) -> Option<Request> {
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
        Request { method, target, headers, body: Vec::new(), at: SystemTime::now(), connection };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn serve(stream: &TcpStream, connection: u64, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader, connection) {
        let path = request.path().to_owned();
        let reply = noted(shared, &request);
        let alive = answer(stream, &mut reader, &path, reply, shared);
        shared.script().busy -= 1;
        if alive.is_none() {
            break;
        }
    }
    drop(stream.shutdown(Shutdown::Both));
}

/// Writes a request down, and says what it is answered with.
fn noted(shared: &Shared, request: &Request) -> Reply {
    let mut script = shared.script();
    script.busy += 1;
    script.busiest = script.busiest.max(script.busy);
    let path = request.path().to_owned();
    script.requests.push(request.clone());
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

/// Answers; nothing if the connection is of no use any more.
fn answer(
    mut stream: &TcpStream,
    reader: &mut BufReader<&TcpStream>,
    path: &str,
    reply: Reply,
    shared: &Shared,
) -> Option<()> {
    match reply {
        Reply::Whole(..) => return stream.write_all(&written(&reply)).ok(),
        Reply::Gated(reply) => {
            let mut script = shared.script();
            while !script.open.contains(path) && !script.closed {
                script = shared.changed.wait(script).unwrap();
            }
            drop(script);
            return answer(stream, reader, path, *reply, shared);
        }
        Reply::Trickled(reply) => {
            for byte in written(&reply) {
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
            until_gone(reader);
        }
        Reply::StallInBody => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal";
            stream.write_all(head).ok()?;
            until_gone(reader);
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

/// The bytes of an answer.
fn written(reply: &Reply) -> Vec<u8> {
    let Reply::Whole(status, headers, body) = reply else {
        panic!("{reply:?} is not written at once");
    };
    let mut text = format!("HTTP/1.1 {status} Told\r\n");
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

/// Waits until the other side closes the connection.
fn until_gone(reader: &mut BufReader<&TcpStream>) {
    let mut rest = [0; 64];
    while reader.read(&mut rest).is_ok_and(|read| read > 0) {}
}
