//! Results that come later, by webhook.
//!
//! Answers 200 when a result was taken, also if it was taken before: a sender that got no answer sends it
//! again. 404 for an unknown token, 400 for an unreadable body, 503 if the flow cannot be reached now: then
//! the result is to be sent again.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::{PathRejection, StringRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use serde_json::json;
use undaunted_runner::drive::DeliveryOutcome;
use undaunted_runner::request::ArrivedResult;
use undaunted_runner::{StepResult, step_result};

use crate::answer::{error_response, json_response};
use crate::limits::ListenLimits;
use crate::listen::Listener;

/// The most bytes of a webhook result.
const MAX_RESULT_BYTES: usize = 16 << 20;

/// Delivers the result of an attempt to its flow. `None` if it could not be looked at now. May block.
pub type Deliver = Arc<dyn Fn(&str, ArrivedResult) -> Option<DeliveryOutcome> + Send + Sync>;

/// Accepts results, and nothing else, until it is dropped.
#[derive(Debug)]
pub struct Webhooks(Listener);

impl Webhooks {
    pub fn listen(address: SocketAddr, deliver: Deliver) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let routes = webhooks(deliver).method_not_allowed_fallback(wrong_method).fallback(not_found);
        Listener::start(listener, ListenLimits::default(), |_| routes).map(Self)
    }

    pub const fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

pub(crate) fn webhooks(deliver: Deliver) -> Router {
    let bound = DefaultBodyLimit::max(MAX_RESULT_BYTES);
    let taken = post(arrived).layer(bound).with_state(deliver);
    Router::new().route("/webhook/{flow}/{step}/{token}", taken)
}

async fn arrived(
    State(deliver): State<Deliver>,
    place: Result<Path<(String, String, String)>, PathRejection>,
    body: Result<String, StringRejection>,
) -> Response {
    let Ok(Path((flow, step, token))) = place else {
        return not_found().await;
    };
    let body = match body {
        Ok(body) => body,
        Err(wrong) => return error_response(wrong.status(), &wrong.body_text()),
    };
    let result = match step_result(&body) {
        StepResult::Given(outputs) => Ok(outputs),
        StepResult::Failed(error) => Err(error),
        StepResult::Unreadable(why) => return error_response(StatusCode::BAD_REQUEST, &why),
    };
    let arrived = ArrivedResult { step, token, result };
    match tokio::task::spawn_blocking(move || deliver(&flow, arrived)).await {
        Ok(Some(DeliveryOutcome::Taken)) => json_response(StatusCode::OK, &json!({ "success": true })),
        Ok(Some(DeliveryOutcome::Unknown | DeliveryOutcome::Elsewhere)) => {
            error_response(StatusCode::NOT_FOUND, "no attempt of this flow and step has this token")
        }
        Ok(None) | Err(_) => error_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "the result cannot be accepted now; send it again later",
        ),
    }
}

async fn not_found() -> Response {
    error_response(StatusCode::NOT_FOUND, "results are sent to /webhook/FLOW/STEP/TOKEN")
}

async fn wrong_method() -> Response {
    error_response(StatusCode::METHOD_NOT_ALLOWED, "results are sent by POST")
}
