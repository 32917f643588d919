//! The JSON of every answer; every refusal has the same shape.

use axum::body::Bytes;
use axum::extract::Path;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    (status, kind, value.to_string()).into_response()
}

pub(crate) fn error_response(status: StatusCode, error: &str) -> Response {
    json_response(status, &error_body(status, error))
}

/// The one shape of all errors.
pub(crate) fn error_body(status: StatusCode, error: &str) -> Value {
    json!({ "error": error, "status": status.as_u16() })
}

/// A view as JSON, its keys in alphabetical order. The keys of views are texts, so this cannot fail.
pub(crate) fn json_of(view: &impl Serialize) -> Value {
    serde_json::to_value(view).unwrap_or_default()
}

/// A JSON object that was stored as text; `{}` if the text is not JSON.
pub(crate) fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({}))
}

/// Adds a field, if there is a value for it.
pub(crate) fn put(json: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let (Some(fields), Some(value)) = (json.as_object_mut(), value) {
        let _ = fields.insert(name.to_owned(), value.into());
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpRefusal {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
}

impl HttpRefusal {
    fn with(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }

    /// The request is malformed.
    pub(crate) fn bad_request(error: impl Into<String>) -> Self {
        Self::with(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::with(StatusCode::NOT_FOUND, error)
    }

    pub(crate) fn conflict(error: impl Into<String>) -> Self {
        Self::with(StatusCode::CONFLICT, error)
    }

    pub(crate) fn unavailable(error: impl Into<String>) -> Self {
        Self::with(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    /// The fault is on the server's side.
    pub(crate) fn internal(error: impl Into<String>) -> Self {
        Self::with(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    pub(crate) fn too_large(error: impl Into<String>) -> Self {
        Self::with(StatusCode::PAYLOAD_TOO_LARGE, error)
    }

    pub(crate) fn timed_out(error: impl Into<String>) -> Self {
        Self::with(StatusCode::REQUEST_TIMEOUT, error)
    }

    pub(crate) fn unreadable_body(wrong: &BytesRejection) -> Self {
        Self::with(wrong.status(), wrong.body_text())
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let mut answer = error_response(self.status, &self.error);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let _ = answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

/// The body of a request, if it arrived whole and within the limit.
pub(crate) type RequestBody = Result<Bytes, BytesRejection>;

/// The name in the path, if it can be decoded.
pub(crate) type PathName = Result<Path<String>, PathRejection>;

pub(crate) fn path_name(name: PathName) -> Result<String, HttpRefusal> {
    name.map(|Path(name)| name).map_err(|_| HttpRefusal::not_found("path not found"))
}
