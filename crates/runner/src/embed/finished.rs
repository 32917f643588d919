//! Jobs that have ended or were suspended.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use undaunted_engine::job::Job;
use undaunted_engine::view::{JobReport, JobStatus, report};
use undaunted_store::Store;

use super::EmbedError;
use crate::drive::read_results;
pub use crate::drive::{ItemResult, ResultStatus};

/// A job that has ended or was suspended, as [`RunningJob::wait`](super::RunningJob::wait) returns it.
pub struct FinishedJob {
    pub(super) job: Job,
    pub(super) store: Arc<dyn Store>,
}

impl FinishedJob {
    /// The name of the job.
    #[must_use]
    pub fn id(&self) -> &str {
        self.job.id()
    }

    /// The status of the job: completed, partial, failed, cancelled, or suspended.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        self.job.stage.into()
    }

    /// A summary of the job: how many items, attempts, retries and dead letters, and why items failed.
    #[must_use]
    pub fn report(&self) -> JobReport {
        report(&self.job)
    }

    /// Reads the result of every item from the journal, in the order of the input.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be read.
    pub fn results(&self) -> Result<Vec<ItemResult>, EmbedError> {
        Ok(read_results(&*self.store, &self.job)?)
    }
}

impl ItemResult {
    /// Deserializes the output of the item from JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the item has no output, or if its output is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.output.as_deref().unwrap_or_default())
    }
}
