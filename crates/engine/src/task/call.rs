//! The request of an attempt.

use std::ops::RangeInclusive;

use serde_json::json;

use super::identity::{correlation_id, receipt_token};
use super::values::ItemValues;
use crate::event::{AttemptId, ParentItem};
use crate::job::Job;
use crate::workflow::template::ValueError;
use crate::workflow::{HttpAction, HttpBody, HttpProtocol, StepCall};

/// A request with all values filled in, secrets included: it is never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpCall {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub expect: Vec<RangeInclusive<u16>>,
    pub protocol: HttpProtocol,
    /// Whether success means only that the result comes later, by webhook.
    pub later: bool,
}

impl std::fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Everything else may hold a secret.
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

pub(super) fn call(
    seen: &ItemValues<'_>,
    http: &HttpAction,
    of: AttemptId,
    round: u32,
) -> Result<HttpCall, ValueError> {
    let has = |name: &str| {
        let mut headers = http.headers.iter();
        headers.any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    let mut headers = Vec::new();
    let body = match &http.body {
        None => None,
        Some(HttpBody::Text(text)) => Some(text.render_body(seen)?),
        Some(HttpBody::Json(json)) => {
            if !has("content-type") {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            Some(json.render(seen)?.to_string())
        }
    };
    for (name, value) in &http.headers {
        headers.push((name.clone(), value.render(seen)?));
    }
    let job = seen.job;
    let own = [
        ("Idempotency-Key", receipt_token(job, of.item(), of.command, round)),
        ("Undaunted-Correlation-Id", correlation_id(job, of.item())),
    ];
    let own = own.into_iter().filter(|(name, _)| !has(name));
    headers.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Ok(HttpCall {
        method: http.method.clone(),
        url: http.url.render_url(seen)?,
        headers,
        body,
        expect: http.expect.clone(),
        protocol: http.protocol,
        later: false,
    })
}

pub(super) fn step_call(seen: &ItemValues<'_>, step: &StepCall, of: AttemptId, round: u32) -> HttpCall {
    let job = seen.job;
    let token = as_uuid(&receipt_token(job, of.item(), of.command, round));
    let name = job.plan().step(of.step).map(|step| step.name.as_str());
    let mut metadata = json!({
        "flow_id": job.id(),
        "step_id": name,
        "receipt_token": token,
    });
    if step.later {
        let name = name.unwrap_or_default();
        let base = seen.files.webhooks.trim_end_matches('/');
        let (flow, name) = (segment(job.id()), segment(name));
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
    let body = json!({ "arguments": seen.item(), "metadata": metadata });
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    HttpCall {
        method: "POST".to_owned(),
        url: step.endpoint.clone(),
        headers: vec![
            header("Content-Type", "application/json"),
            header("Idempotency-Key", &token),
            header("Undaunted-Correlation-Id", &correlation_id(job, of.item())),
        ],
        body: Some(body.to_string()),
        expect: vec![200..=299],
        protocol: HttpProtocol::Argyll,
        later: step.later,
    }
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

/// A token in the form that steps of flows expect.
pub fn as_uuid(token: &str) -> String {
    let piece = |range| token.get(range).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", piece(0..8), piece(8..12), piece(12..16), piece(16..20), piece(20..32))
}
