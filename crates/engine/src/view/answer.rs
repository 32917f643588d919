//! What commands answer that change something.

use serde::Serialize;

/// The process that runs the job was asked to cancel it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CancelRequestView {
    pub job: String,
    pub requested: bool,
    pub owner: u32,
}

/// How a job stands from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PausedView {
    pub job: String,
    pub paused: bool,
    /// The process that was asked.
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
    /// That have used something up.
    pub commands: usize,
    /// Retries.
    pub pending: usize,
    pub notes: Vec<String>,
}
