//! Requests to the owner of a job, passed through the store.

use serde::{Deserialize, Serialize};
use undaunted_engine::input::Input;
use undaunted_store::{Store, StoreError};

use crate::JournalError;
use crate::journal::{aggregate, not_found};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRequest {
    Cancel,
    /// Start nothing new.
    Pause,
    Unpause,
    TopUp(u32),
}

impl JobRequest {
    fn words(self) -> String {
        match self {
            Self::Cancel => "cancel".to_owned(),
            Self::Pause => "pause".to_owned(),
            Self::Unpause => "unpause".to_owned(),
            Self::TopUp(retries) => format!("top-up {retries}"),
        }
    }

    pub const fn input(self) -> Input {
        match self {
            Self::Cancel => Input::Cancel,
            Self::Pause => Input::Pause,
            Self::Unpause => Input::Unpause,
            Self::TopUp(retries) => Input::TopUp { retries },
        }
    }

    fn read(words: &str) -> Option<Self> {
        match words {
            "cancel" => Some(Self::Cancel),
            "pause" => Some(Self::Pause),
            "unpause" => Some(Self::Unpause),
            words => words.strip_prefix("top-up ")?.parse().ok().map(Self::TopUp),
        }
    }
}

/// The result of an accepted attempt, delivered from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivedResult {
    pub step: String,
    pub token: String,
    /// The outputs of the step as JSON, or why it failed.
    pub result: Result<String, String>,
}

#[derive(Debug)]
pub(crate) enum ReadRequest {
    Request(JobRequest),
    Report(ArrivedResult),
}

impl ReadRequest {
    /// None for a request that only a later release knows.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let words = std::str::from_utf8(bytes).ok()?;
        match words.strip_prefix(REPORT) {
            Some(report) => serde_json::from_str(report).ok().map(Self::Report),
            None => JobRequest::read(words).map(Self::Request),
        }
    }
}

const REPORT: &str = "report ";

/// Stores a request for the owner of a job. It is on disk when this returns; the owner polls several times a
/// second.
pub fn ask(store: &dyn Store, job: &str, request: JobRequest) -> Result<(), JournalError> {
    put(store, job, request.words())
}

/// Stores a result for the owner of a job. It is on disk when this returns.
pub fn store_result(store: &dyn Store, job: &str, arrived: &ArrivedResult) -> Result<(), JournalError> {
    let arrived = serde_json::to_string(arrived).unwrap_or_default();
    put(store, job, format!("{REPORT}{arrived}"))
}

fn put(store: &dyn Store, job: &str, words: String) -> Result<(), JournalError> {
    let aggregate = aggregate(job)?;
    match store.request(&aggregate, words.into()) {
        Ok(_) => Ok(()),
        Err(StoreError::NotFound { .. }) => Err(not_found(job)),
        Err(error) => Err(error.into()),
    }
}
