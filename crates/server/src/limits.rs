//! Limits on connections, requests and their duration.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use crate::answer::HttpRefusal;
use crate::body::RequestBodies;
use crate::room::{ConnectionPermit, RoomPart};

/// The most bytes of a request body; webhooks have a limit of their own.
const MAX_BODY_BYTES: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenLimits {
    /// The most connections of clients without the token. Half as many clients with it are served beside them.
    pub connections: usize,
    /// The most requests at a time; others get 503.
    pub requests: usize,
    /// The most web sockets; others get 503.
    pub sockets: usize,
    /// Connections and requests beyond these limits, for health checks and callers with the token.
    pub reserve: usize,
    /// The most bytes of request bodies in memory. Callers with the token may hold a quarter more.
    pub body_bytes: usize,
    /// How long the head of a request may take to arrive.
    pub header: Duration,
    /// How long a body may pause while it arrives.
    pub body_pause: Duration,
    /// How long a body may take to arrive, and how long it may take until the request is answered.
    pub request: Duration,
    /// How long sending an event to a follower may take, and how long a client may take nothing of an answer.
    pub event: Duration,
    /// How long open requests may take to finish when the listener ends.
    pub grace: Duration,
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            requests: 256,
            sockets: 256,
            reserve: 32,
            body_bytes: 64 << 20,
            header: Duration::from_secs(10),
            body_pause: Duration::from_secs(5),
            request: Duration::from_mins(1),
            event: Duration::from_secs(10),
            grace: Duration::from_secs(2),
        }
    }
}

/// Who sends a request. Set by the access control; without one, every caller is anonymous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Caller {
    #[default]
    Anonymous,
    HealthCheck,
    /// It has sent the token.
    Trusted,
}

impl Caller {
    pub(crate) fn of(request: &Request) -> Self {
        request.extensions().get().copied().unwrap_or_default()
    }
}

/// The limits that all requests to a listener share.
#[derive(Clone)]
pub(crate) struct RequestLimits {
    requests: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    time: Duration,
    pub(crate) bodies: RequestBodies,
}

impl RequestLimits {
    pub(crate) fn of(limits: &ListenLimits) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(limits.requests)),
            reserve: Arc::new(Semaphore::new(limits.reserve)),
            time: limits.request,
            bodies: RequestBodies::of(limits),
        }
    }

    /// Does the work of a request, unless too many do theirs.
    pub(crate) async fn run<T>(
        &self,
        caller: Caller,
        work: impl Future<Output = T> + Send,
    ) -> Result<T, HttpRefusal> {
        let permit = match (self.requests.try_acquire(), caller) {
            (Ok(permit), _) => Some(permit),
            (Err(_), Caller::HealthCheck) => None,
            (Err(_), Caller::Trusted) => Some(self.reserve.try_acquire().map_err(|_| too_many())?),
            (Err(_), Caller::Anonymous) => return Err(too_many()),
        };
        let done = tokio::time::timeout(self.time, work).await;
        drop(permit);
        done.map_err(|_| HttpRefusal::timed_out("the request timed out"))
    }
}

fn too_many() -> HttpRefusal {
    HttpRefusal::unavailable("too many requests at once; retry in a second")
}

/// Whether a request only asks for something: nothing that it sends is needed.
pub(crate) fn only_reads(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Reads the body of a request that may need one, and then lets it take its turn.
pub(crate) async fn limited(State(limits): State<RequestLimits>, request: Request, next: Next) -> Response {
    let caller = Caller::of(&request);
    let (parts, body) = request.into_parts();
    if only_reads(&parts.method) {
        let is_announced = !body.is_end_stream();
        // A client that sends it slowly, or never, gets its answer all the same.
        drop(body);
        let answer = limits.run(caller, next.run(Request::from_parts(parts, Body::empty()))).await;
        let answer = answer.unwrap_or_else(IntoResponse::into_response);
        return if is_announced { closing(answer) } else { answer };
    }
    let mut held = match limits.bodies.read(caller, body, MAX_BODY_BYTES).await {
        Ok(held) => held,
        Err(refusal) => return refusal.into_response(),
    };
    let body = Body::from(std::mem::take(&mut held.bytes));
    let answer = limits.run(caller, next.run(Request::from_parts(parts, body))).await;
    // The bytes count until the request is answered.
    drop(held);
    answer.unwrap_or_else(IntoResponse::into_response)
}

/// Refuses requests for which there is no room.
pub(crate) async fn admitted(request: Request, next: Next) -> Response {
    let permit: Option<ConnectionPermit> = request.extensions().get().cloned();
    let caller = Caller::of(&request);
    let part = permit.map_or(RoomPart::Ordinary, |permit| match caller {
        Caller::Trusted => permit.trust(),
        Caller::Anonymous | Caller::HealthCheck => permit.part(),
    });
    match (part, caller) {
        (RoomPart::Reserve, Caller::Anonymous | Caller::Trusted) => {
            HttpRefusal::unavailable("too many connections at once; retry in a second").into_response()
        }
        (RoomPart::Ordinary | RoomPart::Trusted, _) | (RoomPart::Reserve, Caller::HealthCheck) => {
            next.run(request).await
        }
    }
}

/// Closes a connection in the reserve with its first answer, whatever that is: the next client needs the room.
pub(crate) async fn leave_reserve(request: Request, next: Next) -> Response {
    let permit: Option<ConnectionPermit> = request.extensions().get().cloned();
    let answer = next.run(request).await;
    let is_in_reserve = permit.is_some_and(|permit| permit.part() == RoomPart::Reserve);
    if is_in_reserve { closing(answer) } else { answer }
}

fn closing(mut answer: Response) -> Response {
    let _ = answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
