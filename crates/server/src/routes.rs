//! The routes of the API.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use undaunted_engine::view::CatalogView;

use crate::answer::{HttpRefusal, error_response, json_of, json_response};
use crate::api::{Api, unavailable};
use crate::limits::{RequestLimits, limited};
use crate::webhooks::{ResultReceiver, webhooks};
use crate::{flows, socket, steps};

/// How long a scrape waits for jobs of other processes; at the start there may be many.
const COUNTING_TIME: Duration = Duration::from_secs(2);

pub(crate) fn routes(api: Api, results: Arc<dyn ResultReceiver>, limits: RequestLimits) -> Router {
    let step = get(steps::show).put(steps::update).delete(steps::remove);
    Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/engine", get(catalog))
        .route("/engine/", get(catalog))
        .route("/engine/step", get(steps::list).post(steps::register))
        .route("/engine/step/{id}", step)
        .route("/engine/health", get(steps::every_health))
        .route("/engine/health/{id}", get(steps::one_health))
        .route("/engine/plan", post(flows::plan))
        .route("/engine/flow", get(flows::list).post(flows::start))
        .route("/engine/flow/query", post(flows::query))
        .route("/engine/flow/{id}", get(flows::show))
        .route("/engine/ws", get(socket::connect))
        // `limited` has read the body already.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(limits.clone(), limited))
        .with_state(api)
        .merge(webhooks(results, limits))
        .method_not_allowed_fallback(wrong_method)
        .fallback(not_found)
}

async fn health(State(api): State<Api>) -> Response {
    let pulse = api.blocking(|served| {
        let pulse = served.host.store().pulse();
        pulse.map_err(|error| HttpRefusal::unavailable(error.to_string()))
    });
    match pulse.await {
        Ok(_) => json_response(StatusCode::OK, &json!({ "service": "undaunted", "status": "healthy" })),
        Err(refused) => refused.into_response(),
    }
}

/// Unlike `health`, it says whether the flows of the store run again.
async fn ready(State(api): State<Api>) -> Response {
    let host = api.host();
    let why = if host.is_leaving() {
        "the server is shutting down"
    } else if host.has_recovered() {
        return json_response(StatusCode::OK, &json!({ "service": "undaunted", "status": "ready" }));
    } else {
        "start-up recovery is not done"
    };
    HttpRefusal::unavailable(why).into_response()
}

async fn metrics(State(api): State<Api>) -> Result<Response, HttpRefusal> {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let text = api.blocking(|served| {
        if let Some(others) = &served.others {
            others.catch_up(COUNTING_TIME);
        }
        served.host.catalog().read(|catalog| served.metrics.text(catalog)).map_err(unavailable)
    });
    let text = text.await?;
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}

async fn catalog(State(api): State<Api>) -> Result<Response, HttpRefusal> {
    api.read_catalog(|catalog| Ok(json_response(StatusCode::OK, &json_of(&CatalogView::of(catalog))))).await
}

async fn not_found() -> Response {
    error_response(StatusCode::NOT_FOUND, "path not found")
}

async fn wrong_method() -> Response {
    error_response(StatusCode::METHOD_NOT_ALLOWED, "method not allowed for this path")
}

#[cfg(test)]
mod tests;
