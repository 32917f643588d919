//! Answers of commands that change something, and errors, as JSON.

use serde::Serialize;

/// The process that runs the job was asked to cancel it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CancelRequestView {
    pub job: String,
    pub requested: bool,
    pub owner: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PausedView {
    pub job: String,
    pub paused: bool,
    /// The process that received the request.
    pub owner: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedView {
    pub job: String,
    pub removed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DroppedView {
    pub job: String,
    pub item: String,
    pub dropped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedrivenView {
    pub job: String,
    pub item: String,
    pub redriven: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArchivedView {
    pub job: String,
    pub file: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportedView {
    pub job: String,
    pub status: &'static str,
    /// Commands that have made attempts.
    pub commands: usize,
    /// Commands with a pending retry.
    pub pending: usize,
    pub succeeded: usize,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorView {
    pub error: ErrorBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorBody {
    /// One of the codes in `docs/json.md`.
    pub code: &'static str,
    pub message: String,
    pub help: Option<String>,
}

impl ErrorView {
    pub const fn of(code: &'static str, message: String, help: Option<String>) -> Self {
        Self { error: ErrorBody { code, message, help } }
    }
}
