//! HTTP requests: one client for all, and how an answer becomes the end of an attempt.
//!
//! The client follows no redirect and retries nothing, so that every call is an attempt on record. The
//! timeout of an attempt covers the connection, the headers and the body.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, Url, redirect, retry};
use tokio::runtime::Runtime;
use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::HttpCall;
use undaunted_engine::workflow::HttpProtocol;
use undaunted_policy::{FailureCause, FailureClass};

use super::{ExecutorMessage, HttpAnswer, MOST, SHOWN, answer, failed};
use crate::{CancelCall, Notifier, Secrets, failpoint};

/// Headers that frame a request: a wrong one would turn the rest of the body into the next request.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

pub struct HttpOrder {
    pub start: StartId,
    pub call: HttpCall,
    /// Covers headers and body.
    pub timeout: Option<Duration>,
    /// The most bytes of an answer that are read.
    pub output_limit: Option<u64>,
    pub wants_output: bool,
    pub secrets: Secrets,
}

struct Network {
    runtime: Runtime,
    client: Client,
}

static NETWORK: OnceLock<Result<Network, String>> = OnceLock::new();

fn network() -> Result<&'static Network, String> {
    let network = NETWORK.get_or_init(|| {
        // Fails if the program around this library has chosen a provider already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .user_agent(concat!("undaunted/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| causes_without_url(&error))?;
        Ok(Network { runtime, client })
    });
    network.as_ref().map_err(Clone::clone)
}

pub(super) fn origin(url: &str) -> Result<String, String> {
    Ok(address(url)?.origin().ascii_serialization())
}

fn address(url: &str) -> Result<Url, String> {
    // The URL may hold a secret, so it is not shown.
    let parsed = Url::parse(url).map_err(|error| format!("the URL is not valid: {error}"))?;
    if has_dot_segment(url) {
        return Err("the path of the URL has a `.` or `..` segment".to_owned());
    }
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        other => Err(format!("the URL begins with `{other}:` instead of `http:` or `https:`")),
    }
}

/// Whether a segment of the path is `.` or `..`, also when escaped: a server would resolve it to another path
/// than the one that was checked.
fn has_dot_segment(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let behind = path.split_once("://").map_or("", |(_, behind)| behind);
    behind.split(['/', '\\']).skip(1).any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    })
}

pub(crate) fn send(order: HttpOrder, notifier: Notifier) -> CancelCall {
    let start = order.start;
    let network = match network() {
        Ok(network) => network,
        Err(why) => {
            let error = format!("cannot send HTTP requests: {why}");
            let end = failed(start, FailureCause::Network, error);
            notifier.send(ExecutorMessage::Ended(Box::new(end)));
            return Box::new(|| {});
        }
    };
    let task = network.runtime.spawn(async move {
        let later = order.call.later;
        failpoint::pass("call-before");
        let end = attempt(&network.client, order).await;
        failpoint::pass("call-after");
        notifier.send(match end.failure {
            None if later => ExecutorMessage::Accepted(start),
            _ => ExecutorMessage::Ended(Box::new(end)),
        });
    });
    let task = task.abort_handle();
    Box::new(move || task.abort())
}

async fn attempt(client: &Client, mut order: HttpOrder) -> AttemptEnd {
    let began = Instant::now();
    let start = order.start;
    let body = order.call.body.take();
    let done = exchange(client, &order, body);
    let answered = match order.timeout {
        Some(timeout) => tokio::time::timeout(timeout, done)
            .await
            .unwrap_or_else(|_| Err((FailureCause::Timeout, format!("no response within {timeout:?}")))),
        None => done.await,
    };
    let mut end = match answered {
        Ok(answer) => attempt_end(&order, &answer),
        Err((cause, error)) => failed(start, cause, error),
    };
    end.took = began.elapsed();
    end.error = order.secrets.redact(end.error);
    end.stdout_end = order.secrets.redact(end.stdout_end);
    end.output = end.output.take().map(|output| order.secrets.redact(output));
    end
}

type ExchangeFailure = (FailureCause, String);

async fn exchange(
    client: &Client,
    order: &HttpOrder,
    body: Option<String>,
) -> Result<HttpAnswer, ExchangeFailure> {
    let call = &order.call;
    let permanent = |why: String| (FailureCause::Other(FailureClass::Permanent), why);
    let url = address(&call.url).map_err(permanent)?;
    let method = Method::from_bytes(call.method.as_bytes());
    let method = method.map_err(|_| permanent(format!("`{}` is not an HTTP method", call.method)))?;
    let mut request = client.request(method, url);
    request = request.headers(headers(call).map_err(permanent)?);
    if let Some(body) = body {
        request = request.body(body);
    }
    let response = request.send().await.map_err(|error| exchange_failure(&error))?;
    let status = response.status().as_u16();
    let retry_after = retry_after(&response);
    let most = order.output_limit.unwrap_or(MOST);
    let expected = call.expect.iter().any(|range| range.contains(&status));
    let body = read(response, most, expected).await?;
    Ok(HttpAnswer { status, retry_after, body })
}

fn headers(call: &HttpCall) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &call.headers {
        if FRAMING.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(format!("header `{name}` cannot be set: it is derived from the body"));
        }
        // The value may hold a secret, so it is not shown.
        let wrong = || format!("the value of header `{name}` contains a character that is not allowed");
        let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        let known = HeaderName::from_bytes(name.as_bytes());
        let known = known.map_err(|_| format!("`{name}` is not a valid header name"))?;
        headers.append(known, value);
    }
    Ok(headers)
}

fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    answer::parse_retry_after(text, SystemTime::now())
}

/// Reads the body. One that is too long is an error if its status is expected; otherwise it is cut.
async fn read(mut response: Response, most: u64, expected: bool) -> Result<Vec<u8>, ExchangeFailure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| exchange_failure(&error))? {
        body.extend_from_slice(&piece);
        if u64::try_from(body.len()).unwrap_or(u64::MAX) > most {
            if !expected {
                break;
            }
            let why = format!("the response is longer than {most} bytes");
            return Err((FailureCause::Other(FailureClass::Permanent), why));
        }
    }
    Ok(body)
}

fn exchange_failure(error: &reqwest::Error) -> ExchangeFailure {
    let cause = if error.is_timeout() {
        FailureCause::Timeout
    } else if error.is_builder() {
        FailureCause::Other(FailureClass::Permanent)
    } else {
        FailureCause::Network
    };
    (cause, causes_without_url(error))
}

/// The causes of an error, without the URL, which may hold a secret.
fn causes_without_url(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut next: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.ends_with(&message) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&message);
        }
        next = cause.source();
    }
    if text.is_empty() { "the request failed".to_owned() } else { text }
}
pub fn attempt_end(order: &HttpOrder, answer: &HttpAnswer) -> AttemptEnd {
    let text = String::from_utf8_lossy(&answer.body);
    let shown = answer::prefix(&text, SHOWN);
    let mut end = AttemptEnd {
        start: order.start,
        stdout_end: shown.to_owned(),
        retry_after: answer.retry_after,
        ..AttemptEnd::default()
    };
    let read = match order.call.protocol {
        HttpProtocol::Plain => answer.plain(&order.call.expect, order.wants_output),
        HttpProtocol::Argyll => answer.argyll(&order.call.expect),
    };
    match read {
        Ok(output) => end.output = order.wants_output.then_some(output),
        Err((cause, error)) => {
            end.failure = Some(cause);
            end.error = error.unwrap_or_else(|| shown.trim().to_owned());
        }
    }
    end
}

/// Checks that a GET succeeds. Errors do not show the URL.
pub fn is_there(url: &str, patience: Duration) -> Result<(), String> {
    let network = network()?;
    let url = address(url)?;
    let asked = async { tokio::time::timeout(patience, network.client.get(url).send()).await };
    let answer = network.runtime.block_on(asked);
    let answer = answer.map_err(|_| format!("no response within {patience:?}"))?;
    let answer = answer.map_err(|error| causes_without_url(&error))?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("HTTP {}", status.as_u16())),
    }
}
