//! Why a command was refused, as JSON.

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorView {
    pub error: ErrorBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBody {
    /// One of the words of `docs/json.md`.
    pub code: &'static str,
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
}

impl ErrorView {
    pub const fn of(code: &'static str, message: String, help: Option<String>) -> Self {
        Self { error: ErrorBody { code, message, help } }
    }
}
