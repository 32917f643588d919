//! Results that come later, by webhook.
//!
//! Answers 200 when a result was taken, and also when it was taken before: whoever sends it cannot
//! know, and asks again. 404 for a token nobody gave out, 400 for a body that is none, 503 if nobody
//! could look at it: then it is to be sent again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::{PathRejection, StringRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use undaunted_runner::{StepResult, step_result};

/// The most bytes of a result.
const MOST: usize = 16 << 20;

/// How long whoever is being answered is waited for at the end.
const GRACE: Duration = Duration::from_secs(2);

/// A result that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The flow.
    pub flow: String,
    /// Its step.
    pub step: String,
    /// The token the attempt was made with.
    pub token: String,
    /// What it gave, as JSON, or why it failed.
    pub result: Result<String, String>,
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It was taken, now or before.
    Taken,
    /// Nobody waits for it.
    Unknown,
    /// Nobody could look at it.
    Unheard,
}

/// Hands a result on. May wait.
pub type Deliver = Arc<dyn Fn(Delivery) -> Delivered + Send + Sync>;

/// Where results arrive, for as long as it is there.
#[derive(Debug)]
pub struct Webhooks {
    address: SocketAddr,
    runtime: Option<Runtime>,
    end: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

impl Webhooks {
    /// Listens at an address.
    ///
    /// # Errors
    ///
    /// When that is not possible.
    pub fn listen(address: SocketAddr, deliver: Deliver) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("webhooks")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let routes = Router::new()
            .route("/webhook/{flow}/{step}/{token}", post(arrived))
            .method_not_allowed_fallback(wrong_method)
            .fallback(wrong_place)
            .layer(DefaultBodyLimit::max(MOST))
            .with_state(deliver);
        let (end, asked) = oneshot::channel();
        let served = runtime.spawn(async move {
            let served = axum::serve(listener, routes);
            // Whoever listens is gone as well when it ends.
            let served = served.with_graceful_shutdown(async { drop(asked.await) });
            drop(served.await);
        });
        Ok(Self {
            address,
            runtime: Some(runtime),
            end: Some(end),
            served: Some(served),
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        // Whoever sent the last result is to hear that it was taken: nobody is here to be asked again.
        drop(self.end.take());
        let (Some(runtime), Some(served)) = (self.runtime.take(), self.served.take()) else {
            return;
        };
        let done = async { tokio::time::timeout(GRACE, served).await };
        drop(runtime.block_on(done));
        runtime.shutdown_background();
    }
}

async fn arrived(
    State(deliver): State<Deliver>,
    place: Result<Path<(String, String, String)>, PathRejection>,
    body: Result<String, StringRejection>,
) -> Response {
    let Ok(Path((flow, step, token))) = place else {
        return wrong_place().await;
    };
    let body = match body {
        Ok(body) => body,
        Err(wrong) => return said(wrong.status(), &wrong.body_text()),
    };
    let result = match step_result(&body) {
        StepResult::Given(outputs) => Ok(outputs),
        StepResult::Failed(error) => Err(error),
        StepResult::Unreadable(why) => return said(StatusCode::BAD_REQUEST, &why),
    };
    let delivery = Delivery {
        flow,
        step,
        token,
        result,
    };
    match tokio::task::spawn_blocking(move || deliver(delivery)).await {
        Ok(Delivered::Taken) => {
            let told = json!({ "success": true }).to_string();
            ([(CONTENT_TYPE, "application/json")], told).into_response()
        }
        Ok(Delivered::Unknown) => said(
            StatusCode::NOT_FOUND,
            "no attempt of this flow and step has this token",
        ),
        Ok(Delivered::Unheard) | Err(_) => said(
            StatusCode::SERVICE_UNAVAILABLE,
            "it cannot be taken now; send it again later",
        ),
    }
}

async fn wrong_place() -> Response {
    said(
        StatusCode::NOT_FOUND,
        "results are sent to /webhook/FLOW/STEP/TOKEN",
    )
}

async fn wrong_method() -> Response {
    said(StatusCode::METHOD_NOT_ALLOWED, "results are sent by POST")
}

fn said(status: StatusCode, error: &str) -> Response {
    let told = json!({ "error": error, "status": status.as_u16() }).to_string();
    (status, [(CONTENT_TYPE, "application/json")], told).into_response()
}
