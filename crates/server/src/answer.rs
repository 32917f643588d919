//! What every answer looks like: JSON, and for what is refused always the same shape.

use axum::extract::Path;
use axum::extract::rejection::{BytesRejection, PathRejection};
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

/// Something that is not done, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
}

impl Refused {
    fn with(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
        }
    }

    /// What was asked makes no sense.
    pub(crate) fn wrong(error: impl Into<String>) -> Self {
        Self::with(StatusCode::BAD_REQUEST, error)
    }

    /// It is not there.
    pub(crate) fn missing(error: impl Into<String>) -> Self {
        Self::with(StatusCode::NOT_FOUND, error)
    }

    /// It contradicts what is there.
    pub(crate) fn conflict(error: impl Into<String>) -> Self {
        Self::with(StatusCode::CONFLICT, error)
    }

    /// It cannot be done now.
    pub(crate) fn unavailable(error: impl Into<String>) -> Self {
        Self::with(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    /// Something is wrong here.
    pub(crate) fn failed(error: impl Into<String>) -> Self {
        Self::with(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// The request could not be read whole.
    pub(crate) fn unread(wrong: &BytesRejection) -> Self {
        Self::with(wrong.status(), wrong.body_text())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        said(self.status, &self.error)
    }
}

/// The name that stands in the address, if it can be one.
pub(crate) type Named = Result<Path<String>, PathRejection>;

/// The name that stands in the address.
pub(crate) fn named(name: Named) -> Result<String, Refused> {
    let name = name.map(|Path(name)| name);
    name.map_err(|_| Refused::missing("there is nothing at this address"))
}
