//! HTTP requests from any bytes.
//!
//! Bytes after a `!` are sent as they are; everything else is requests in the notation of `request`, each on
//! a connection of its own. After a `@` the server requires a token. Every response has a documented shape
//! and comes in time, no request causes a server error, and afterwards everything that is listed can be
//! shown.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use undaunted_server::{Access, OfflineServer};

use super::answer::{HttpResponse, ServerOutput, parse_output};
use super::law::uphold;
use super::offline_server::with_server;
use super::request::FuzzRequest;

/// The longest time for a response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const MOST: usize = 12;

const TOKEN: &str = "sesame";

pub fn http_request(data: &[u8]) -> BTreeSet<&'static str> {
    let (is_closed, data) = match data.strip_prefix(b"@") {
        Some(rest) => (true, rest),
        None => (false, data),
    };
    let access = if is_closed { Access::by_token(TOKEN.to_owned()) } else { Access::local(None) };
    let outcomes = with_server(access, |server| {
        let mut outcomes = BTreeSet::new();
        if let Some(raw) = data.strip_prefix(b"!") {
            for output in responses_to(server, raw, &"raw") {
                outcomes.extend(word(&output, &"raw"));
            }
        } else {
            for request in FuzzRequest::all(data).iter().take(MOST) {
                for output in responses_to(server, &request.bytes(), request) {
                    let word = word(&output, request);
                    if is_closed {
                        check_refused_without_token(request, &output);
                    }
                    outcomes.extend(word);
                }
            }
        }
        check_listed(server);
        outcomes
    });
    outcomes.unwrap_or_default()
}

fn responses_to(server: &OfflineServer<'_>, sent: &[u8], request: &dyn std::fmt::Debug) -> Vec<ServerOutput> {
    let answer = server.answer(sent, PATIENCE);
    uphold("an answer comes in time", answer.is_some(), &request);
    parse_output(&answer.unwrap_or_default())
}

fn word(output: &ServerOutput, request: &dyn std::fmt::Debug) -> Option<&'static str> {
    match output {
        ServerOutput::HttpResponse(answer) => Some(answered(answer, request)),
        ServerOutput::Message(text) => {
            let message: Option<Value> = serde_json::from_slice(text).ok();
            let kind = message.as_ref().and_then(|it| it.get("type")?.as_str());
            uphold("a message has a type", kind.is_some(), &(request, message.as_ref()));
            match kind {
                Some("subscribed") => Some("subscribed"),
                Some("error") => Some("not subscribed"),
                _ => Some("event"),
            }
        }
        ServerOutput::Control => None,
        ServerOutput::Nonsense(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            uphold("a response can be parsed", false, &(request, text));
            None
        }
    }
}

fn answered(answer: &HttpResponse, request: &dyn std::fmt::Debug) -> &'static str {
    let facts = (request, answer, String::from_utf8_lossy(&answer.body));
    let body = answer.json();
    // HEAD gets no body.
    if answer.body.is_empty() && matches!(answer.status, 400..=499) {
        return "refused without words";
    }
    if answer.status >= 400 {
        let field = |name: &str| body.as_ref().and_then(|body| body.get(name));
        let error = field("error").and_then(Value::as_str);
        let told = error.is_some_and(|error| !error.is_empty())
            && field("status").and_then(Value::as_u64) == Some(answer.status.into())
            && answer.kind == "application/json";
        uphold("a refusal has a reason and its status", told, &facts);
        // A result that arrives too early is to be sent again, and this server recovers nothing; nothing else
        // gets a 503.
        let is_early = |it: &str| it.contains("send it again") || it.contains("start-up recovery");
        let early = answer.status == 503 && error.is_some_and(is_early);
        let fine = answer.status < 500 || early;
        uphold("a wrong request is no error of the server", fine, &facts);
    }
    let is_json = answer.body.is_empty() || body.is_some();
    match answer.status {
        100 => "continue",
        101 => "socket",
        200 if answer.kind.starts_with("application/openmetrics-text") => "metrics",
        200 => {
            uphold("an answer is JSON", is_json, &facts);
            "done"
        }
        201 => {
            uphold("an answer is JSON", is_json, &facts);
            "made"
        }
        400 => "wrong",
        401 => "unknown",
        403 => "foreign",
        404 => "missing",
        405 => "wrong method",
        408 => "too late",
        409 => "conflict",
        413 => "too large",
        414 | 431 => "too long",
        415 => "not JSON",
        426 => "no socket",
        503 => "too early",
        _ => {
            uphold("a status is one of those there are", false, &facts);
            ""
        }
    }
}

/// Without the token no request is let in.
fn check_refused_without_token(request: &FuzzRequest, output: &ServerOutput) {
    let shown = request.header("authorization").unwrap_or_default();
    let open = ["/health", "/ready", "/webhook/"].iter().any(|open| request.path.starts_with(open));
    if let ServerOutput::HttpResponse(answer) = output
        && !shown.contains(TOKEN)
        && !open
    {
        // A target that is no address is refused before the token is looked at.
        let out = matches!(answer.status, 100 | 400 | 401 | 408 | 414 | 431);
        uphold("without the token no request is let in", out, &(request, answer));
    }
}

/// Everything that is listed can be shown.
fn check_listed(server: &OfflineServer<'_>) {
    let get = |path: &str| {
        let bearer = format!("Authorization: Bearer {TOKEN}");
        let request = FuzzRequest::get(path, &[&bearer]);
        let output = responses_to(server, &request.bytes(), &path);
        let [ServerOutput::HttpResponse(answer)] = output.as_slice() else {
            uphold("every request is answered", false, &(path, &output));
            return Value::Null;
        };
        let fine = answer.status == 200;
        uphold("what is listed can be shown", fine, &(path, answer.json()));
        answer.json().unwrap_or_default()
    };
    for path in ["/health", "/metrics", "/engine", "/engine/health"] {
        let _ = get(path);
    }
    for (list, id) in [("flow", "flows"), ("step", "steps")] {
        let listed = get(&format!("/engine/{list}"));
        let listed = listed.get(id).unwrap_or(&listed).as_array().cloned();
        for one in listed.unwrap_or_default() {
            let id = one.get("id").and_then(Value::as_str).unwrap_or_default();
            let shown = get(&format!("/engine/{list}/{}", escaped(id)));
            let same = shown.get("id").and_then(Value::as_str) == Some(id);
            uphold("what is shown is what was listed", same, &(id, shown));
        }
    }
}

/// A name as one segment of a path.
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let pieces = name
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    pieces.collect()
}
