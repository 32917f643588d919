//! Results that come later, by webhook.
//!
//! Answers 200 when a result was taken, also if it was taken before: a sender that got no answer sends it
//! again. 404 for an unknown token, 400 for an unreadable body, 503 if the flow cannot be reached now: then
//! the result is to be sent again.
//!
//! The sender needs no other token than the one in the URL. So that token is checked before the body is read.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::json;
use tokio::task::spawn_blocking;
use undaunted_engine::task::TokenStatus;
use undaunted_runner::drive::{DeliveryOutcome, LoopHandle, TokenOwner};
use undaunted_runner::flows::FlowHost;
use undaunted_runner::request::ArrivedResult;
use undaunted_runner::{StepResult, step_result};

use crate::answer::{HttpRefusal, error_response, json_response};
use crate::body::{HeldBody, discard};
use crate::limits::{Caller, ListenLimits, RequestLimits, admitted};
use crate::listen::Listener;

/// The most bytes of a webhook result.
const MAX_RESULT_BYTES: usize = 16 << 20;

/// Takes the results of attempts. Both calls may block, and return `None` if the flow cannot be reached now.
pub trait ResultReceiver: Send + Sync {
    /// Whether a step of a flow has given out this token.
    fn knows_token(&self, flow: &str, step: &str, token: &str) -> Option<bool>;

    fn deliver(&self, flow: &str, arrived: ArrivedResult) -> Option<DeliveryOutcome>;
}

impl ResultReceiver for FlowHost {
    fn knows_token(&self, flow: &str, step: &str, token: &str) -> Option<bool> {
        Self::knows_token(self, flow, step, token)
    }

    fn deliver(&self, flow: &str, arrived: ArrivedResult) -> Option<DeliveryOutcome> {
        Self::deliver(self, flow, &arrived)
    }
}

impl ResultReceiver for LoopHandle {
    fn knows_token(&self, flow: &str, step: &str, token: &str) -> Option<bool> {
        Some(match self.find_token(flow, step, token)? {
            TokenOwner::Here(found) => found != TokenStatus::Unknown,
            TokenOwner::Elsewhere => false,
        })
    }

    fn deliver(&self, flow: &str, arrived: ArrivedResult) -> Option<DeliveryOutcome> {
        Self::deliver(self, flow, arrived)
    }
}

#[derive(Clone)]
struct WebhookState {
    results: Arc<dyn ResultReceiver>,
    limits: RequestLimits,
}

/// Accepts results, and nothing else, until it is dropped.
#[derive(Debug)]
pub struct Webhooks(Listener);

impl Webhooks {
    pub fn listen(address: SocketAddr, results: Arc<dyn ResultReceiver>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let limits = ListenLimits::default();
        let routes = webhooks(results, RequestLimits::of(&limits));
        let routes = routes.method_not_allowed_fallback(wrong_method).fallback(not_found);
        Listener::start(listener, limits, |_| routes.layer(from_fn(admitted))).map(Self)
    }

    pub const fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

pub(crate) fn webhooks(results: Arc<dyn ResultReceiver>, limits: RequestLimits) -> Router {
    let route = post(arrived).with_state(WebhookState { results, limits });
    Router::new().route("/webhook/{flow}/{step}/{token}", route)
}

async fn arrived(
    State(state): State<WebhookState>,
    place: Result<Path<(String, String, String)>, PathRejection>,
    request: Request,
) -> Response {
    let Ok(Path((flow, step, token))) = place else {
        return not_found().await;
    };
    let caller = Caller::of(&request);
    let body = request.into_body();
    if let Err(refusal) = state.check_token(caller, [&flow, &step, &token]).await {
        discard(body).await;
        return refusal.into_response();
    }
    let answer = match state.limits.bodies.read(caller, body, MAX_RESULT_BYTES).await {
        Ok(body) => state.take(caller, flow, (step, token), body).await,
        Err(refusal) => Err(refusal),
    };
    answer.unwrap_or_else(IntoResponse::into_response)
}

impl WebhookState {
    async fn check_token(&self, caller: Caller, of: [&String; 3]) -> Result<(), HttpRefusal> {
        let results = Arc::clone(&self.results);
        let [flow, step, token] = of.map(Clone::clone);
        let look = spawn_blocking(move || results.knows_token(&flow, &step, &token));
        match self.limits.run(caller, look).await? {
            Ok(Some(true)) => Ok(()),
            Ok(Some(false)) => Err(unknown_token()),
            Ok(None) | Err(_) => Err(not_now()),
        }
    }

    async fn take(
        &self,
        caller: Caller,
        flow: String,
        (step, token): (String, String),
        body: HeldBody,
    ) -> Result<Response, HttpRefusal> {
        let text = std::str::from_utf8(&body.bytes)
            .map_err(|_| HttpRefusal::bad_request("the request body is not UTF-8"))?;
        let result = match step_result(text) {
            StepResult::Given(outputs) => Ok(outputs),
            StepResult::Failed(error) => Err(error),
            StepResult::Unreadable(why) => return Err(HttpRefusal::bad_request(why)),
        };
        let arrived = ArrivedResult { step, token, result };
        let results = Arc::clone(&self.results);
        let delivered = spawn_blocking(move || results.deliver(&flow, arrived));
        match self.limits.run(caller, delivered).await? {
            Ok(Some(DeliveryOutcome::Taken)) => {
                Ok(json_response(StatusCode::OK, &json!({ "success": true })))
            }
            Ok(Some(DeliveryOutcome::Unknown | DeliveryOutcome::Elsewhere)) => Err(unknown_token()),
            Ok(None) | Err(_) => Err(not_now()),
        }
    }
}

fn unknown_token() -> HttpRefusal {
    HttpRefusal::not_found("no attempt of this flow and step has this token")
}

fn not_now() -> HttpRefusal {
    HttpRefusal::unavailable("the result cannot be accepted now; send it again later")
}

async fn not_found() -> Response {
    error_response(StatusCode::NOT_FOUND, "results are sent to /webhook/FLOW/STEP/TOKEN")
}

async fn wrong_method() -> Response {
    error_response(StatusCode::METHOD_NOT_ALLOWED, "results are sent by POST")
}
