//! Limits on connections, requests and their duration.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::sync::Semaphore;

use crate::answer::error_response;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenLimits {
    /// The most connections; others wait in the queue of the system.
    pub connections: usize,
    /// The most requests at a time; others get 503.
    pub requests: usize,
    /// How long the head of a request may take to arrive.
    pub header: Duration,
    pub request: Duration,
    /// How long sending an event to a follower may take.
    pub event: Duration,
    /// How long open requests may take to finish when the listener ends.
    pub grace: Duration,
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            requests: 256,
            header: Duration::from_secs(10),
            request: Duration::from_mins(1),
            event: Duration::from_secs(10),
            grace: Duration::from_secs(2),
        }
    }
}

#[derive(Clone)]
struct RequestLimit {
    requests: Arc<Semaphore>,
    time: Duration,
}

pub(crate) fn bounded(routes: Router, limits: ListenLimits) -> Router {
    let limit = RequestLimit { requests: Arc::new(Semaphore::new(limits.requests)), time: limits.request };
    routes.layer(from_fn_with_state(limit, bound))
}

async fn bound(State(limit): State<RequestLimit>, request: Request, next: Next) -> Response {
    let Ok(_taken) = limit.requests.try_acquire() else {
        let mut answer =
            error_response(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once; retry in a second");
        let second = HeaderValue::from_static("1");
        let _ = answer.headers_mut().insert(RETRY_AFTER, second);
        return answer;
    };
    match tokio::time::timeout(limit.time, next.run(request)).await {
        Ok(answer) => answer,
        Err(_) => error_response(StatusCode::REQUEST_TIMEOUT, "the request timed out"),
    }
}
