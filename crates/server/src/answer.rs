//! What every answer looks like: JSON, and for what is refused always the same shape.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An answer in JSON.
pub(crate) fn told(status: StatusCode, value: &Value) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    (status, kind, value.to_string()).into_response()
}

/// An answer that says what is wrong.
pub(crate) fn said(status: StatusCode, error: &str) -> Response {
    told(
        status,
        &json!({ "error": error, "status": status.as_u16() }),
    )
}
