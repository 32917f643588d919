//! A step server with a record of its requests.
//!
//! The query of a request says how long the response takes and how many of a hundred fail. A request is under
//! way until it is answered or the client has closed the connection.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use undaunted_policy::Seed;

use super::compare::ServedCall;
use super::record::now;
use super::servers::{header, post};

/// A result that was sent to a webhook. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostedResult {
    pub(crate) correlation: String,
    pub(crate) command: String,
    pub(crate) first: u64,
    pub(crate) accepted_at: Option<u64>,
    /// The status it was refused with.
    pub(crate) refused: Option<u16>,
}

#[derive(Default)]
struct StepServerState {
    calls: Vec<ServedCall>,
    posted: Vec<PostedResult>,
    /// Requests under way, by token: the index of the call and its connection.
    under_way: BTreeMap<String, Vec<(usize, TcpStream)>>,
    seen: BTreeMap<String, u64>,
    closed: bool,
}

#[derive(Default)]
struct StepServerShared {
    state: Mutex<StepServerState>,
    seed: u64,
}

pub(crate) struct RecordingStepServer {
    address: SocketAddr,
    shared: Arc<StepServerShared>,
}

impl RecordingStepServer {
    pub(crate) fn start(seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(StepServerShared { seed, ..StepServerShared::default() });
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if theirs.state().closed {
                    return;
                }
                let shared = Arc::clone(&theirs);
                thread::spawn(move || serve(&shared, &stream));
            }
        });
        Ok(Self { address, shared })
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn calls(&self) -> Vec<ServedCall> {
        self.shared.state().calls.clone()
    }

    pub(crate) fn posted(&self) -> Vec<PostedResult> {
        self.shared.state().posted.clone()
    }
}

impl Drop for RecordingStepServer {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
    }
}

impl StepServerShared {
    fn state(&self) -> MutexGuard<'_, StepServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct StepRequest {
    path: String,
    query: BTreeMap<String, u64>,
    correlation: String,
    token: String,
    body: Value,
}

fn serve(shared: &Arc<StepServerShared>, stream: &TcpStream) {
    drop(stream.set_nodelay(true));
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let mut reading = BufReader::new(reading);
    while let Some(request) = read_request(&mut reading) {
        if answer(shared, stream, request).is_none() {
            return;
        }
    }
}

fn read_request(reading: &mut impl BufRead) -> Option<StepRequest> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reading.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let target = head.split(' ').nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        Some((key.to_owned(), value.parse().ok()?))
    });
    let text = |name: &str| header(&head, name).unwrap_or_default().to_owned();
    let length = text("content-length").parse().unwrap_or_default();
    let mut body = vec![0; length];
    reading.read_exact(&mut body).ok()?;
    Some(StepRequest {
        path: path.trim_start_matches('/').to_owned(),
        query: pairs.collect(),
        correlation: text("undaunted-correlation-id"),
        token: text("idempotency-key"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// Responds, unless the client has closed the connection.
fn answer(shared: &Arc<StepServerShared>, stream: &TcpStream, request: StepRequest) -> Option<()> {
    let number = |key: &str| request.query.get(key).copied().unwrap_or_default();
    let (index, seen) = begin(shared, stream, &request)?;
    let name =
        request.token.bytes().fold(3_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let draws = Seed(shared.seed).draws(name, seen, 1);
    thread::sleep(Duration::from_millis(draws.between(1, 0, number("takes"))));
    let status = if draws.between(2, 1, 100) <= number("fails") { 503 } else { 200 };
    let body = body(&request, status, number("gives"));
    let mut state = shared.state();
    if let Some(under_way) = state.under_way.get_mut(&request.token) {
        under_way.retain(|(of, _)| *of != index);
    }
    let call = state.calls.get_mut(index)?;
    call.status = Some(status);
    drop(state);
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} answered\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = stream;
    stream.write_all(text.as_bytes()).ok()?;
    let url = request.body.pointer("/metadata/webhook_url");
    if let (200, Some(url)) = (status, url.and_then(Value::as_str)) {
        let (url, shared) = (url.to_owned(), Arc::clone(shared));
        let wait = Duration::from_millis(draws.between(3, 0, number("later")));
        thread::spawn(move || report(&shared, &request, &url, wait));
    }
    Some(())
}

/// Records a request and returns its index, and how often its token was seen before.
fn begin(shared: &StepServerShared, stream: &TcpStream, request: &StepRequest) -> Option<(usize, u64)> {
    let own = stream.try_clone().ok()?;
    let mut state = shared.state();
    let others = state.under_way.entry(request.token.clone()).or_default();
    let overlaps = others.iter().any(|(_, other)| is_connected(other));
    let seen = state.seen.entry(request.token.clone()).or_default();
    *seen += 1;
    let seen = *seen;
    let index = state.calls.len();
    state.calls.push(ServedCall {
        correlation: request.correlation.clone(),
        command: request.path.clone(),
        token: request.token.clone(),
        begin: now(),
        status: None,
        overlaps,
    });
    let others = state.under_way.entry(request.token.clone()).or_default();
    others.push((index, own));
    Some((index, seen))
}

/// Whether the client is still connected.
fn is_connected(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return false;
    }
    let peeked = stream.peek(&mut [0]);
    drop(stream.set_nonblocking(false));
    match peeked {
        Ok(read) => read > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// The outputs of a step: `gives` elements of `xs`, or else `y`.
fn body(request: &StepRequest, status: u16, gives: u64) -> String {
    if status != 200 {
        return "not now".to_owned();
    }
    let outputs = match gives {
        0 => json!({"y": 1}),
        many => json!({"xs": (1..=many).collect::<Vec<_>>()}),
    };
    let later = request.body.pointer("/metadata/webhook_url").is_some();
    let body = if later { json!({"success": true}) } else { json!({"success": true, "outputs": outputs}) };
    body.to_string()
}

/// Sends a result until a server accepts it.
fn report(shared: &StepServerShared, request: &StepRequest, url: &str, wait: Duration) {
    thread::sleep(wait);
    let index = {
        let mut state = shared.state();
        state.posted.push(PostedResult {
            correlation: request.correlation.clone(),
            command: request.path.clone(),
            first: now(),
            ..PostedResult::default()
        });
        state.posted.len().saturating_sub(1)
    };
    let result = json!({"success": true, "outputs": {"y": 2}}).to_string();
    loop {
        let answer = post(url, &result);
        let mut state = shared.state();
        if state.closed {
            return;
        }
        if let (Some(answer), Some(posted)) = (answer, state.posted.get_mut(index)) {
            match answer.status {
                200 => {
                    posted.accepted_at = Some(now());
                    return;
                }
                503 => {}
                other => {
                    posted.refused = Some(other);
                    return;
                }
            }
        }
        drop(state);
        thread::sleep(Duration::from_millis(5));
    }
}
