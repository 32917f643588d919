//! The HTTP request or function call of an attempt.

use std::ops::RangeInclusive;

use serde_json::json;

use super::endpoint::filled_endpoint;
use super::identity::as_uuid;
use super::values::ItemValues;
use crate::event::ParentItem;
use crate::job::Job;
use crate::workflow::template::ValueError;
use crate::workflow::{FunctionAction, HttpAction, HttpBody, HttpProtocol, StepCall};

/// A request with all values filled in, secrets included: it is never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpCall {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub expect: Vec<RangeInclusive<u16>>,
    pub protocol: HttpProtocol,
    /// Whether a success means only that the target has accepted the request: the result comes by webhook.
    pub later: bool,
}

impl std::fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Everything else may hold a secret.
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

pub(super) fn http_call(values: &ItemValues<'_>, http: &HttpAction) -> Result<HttpCall, ValueError> {
    let has = |name: &str| http.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut headers = Vec::new();
    let body = match &http.body {
        None => None,
        Some(HttpBody::Text(text)) => Some(text.render_body(values)?),
        Some(HttpBody::Json(json)) => {
            if !has("content-type") {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            Some(json.render(values)?.to_string())
        }
    };
    for (name, value) in &http.headers {
        headers.push((name.clone(), value.render(values)?));
    }
    let own =
        [("Idempotency-Key", values.receipt_token()), ("Undaunted-Correlation-Id", values.correlation_id())];
    let own = own.into_iter().filter(|(name, _)| !has(name));
    headers.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Ok(HttpCall {
        method: http.method.clone(),
        url: http.url.render_url(values)?,
        headers,
        body,
        expect: http.expect.clone(),
        protocol: http.protocol,
        later: false,
    })
}

/// A call by GET has no body: its inputs are in the address, and the receipt token is in a header.
pub(super) fn step_call(values: &ItemValues<'_>, step: &StepCall) -> Result<HttpCall, ValueError> {
    let job = values.job;
    let token = as_uuid(&values.receipt_token());
    let name = job.plan().step(values.of.step).map(|step| step.name.as_str());
    let mut metadata = json!({
        "flow_id": job.id(),
        "step_id": name,
        "receipt_token": token,
    });
    if step.later {
        let base = values.files.webhooks.trim_end_matches('/');
        let (flow, name) = (segment(job.id()), segment(name.unwrap_or_default()));
        let url = format!("{base}/webhook/{flow}/{name}/{token}");
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("webhook_url".to_owned(), url.into());
        }
    }
    if let (Some(parent), Some(metadata)) = (parent_of(job), metadata.as_object_mut()) {
        metadata.insert("parent_flow_id".to_owned(), parent.flow.as_str().into());
        metadata.insert("parent_step_id".to_owned(), parent.step.as_str().into());
        let token = parent.token.as_str().into();
        metadata.insert("parent_work_item_token".to_owned(), token);
    }
    let body = json!({ "arguments": values.item(), "metadata": metadata });
    let body = (step.method != "GET").then(|| body.to_string());
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let kind = body.is_some().then(|| header("Content-Type", "application/json"));
    let own =
        [header("Idempotency-Key", &token), header("Undaunted-Correlation-Id", &values.correlation_id())];
    Ok(HttpCall {
        method: step.method.clone(),
        url: filled_endpoint(&step.endpoint, values.item())?,
        headers: kind.into_iter().chain(own).collect(),
        body,
        expect: vec![200..=299],
        protocol: HttpProtocol::Argyll,
        later: step.later,
    })
}

/// Percent-encodes a name as one segment of a path.
fn segment(name: &str) -> String {
    use std::fmt::Write;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:+".contains(&byte);
    name.bytes().fold(String::new(), |mut text, byte| {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            // Writing to memory cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

pub(super) fn parent_of(job: &Job) -> Option<&ParentItem> {
    job.submitted().flow.as_ref()?.parent.as_ref()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    pub name: String,
    /// JSON.
    pub input: String,
    pub item: String,
    /// Counted from 1.
    pub attempt: u32,
    /// The same for all attempts of a round, so that the function can detect a repetition.
    pub receipt_token: String,
}

pub(super) fn function_call(
    values: &ItemValues<'_>,
    function: &FunctionAction,
) -> Result<FunctionCall, ValueError> {
    let (job, of) = (values.job, values.of);
    // Found together: that takes half the time.
    let texts = job.step(of.step).and_then(|state| state.items.texts(of.index));
    let (item, value) = texts.unwrap_or_else(|| (job.identity(of.item()), job.value(of.item())));
    Ok(FunctionCall {
        name: function.name.clone(),
        input: match &function.with {
            Some(with) => with.render(values)?.to_string(),
            None => value.to_owned(),
        },
        item: item.to_owned(),
        attempt: of.attempt.0,
        receipt_token: values.receipt_token(),
    })
}
