//! What a job has come to.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use undaunted_engine::job::Job;
use undaunted_engine::view::{JobReport, JobStatus, report};
use undaunted_store::Store;

use super::EmbedError;
use crate::drive::read_results;
pub use crate::drive::{ItemResult, ResultStatus};

/// A job that was left: it has ended, or was suspended.
pub struct FinishedJob {
    pub(super) job: Job,
    pub(super) store: Arc<dyn Store>,
}

impl FinishedJob {
    /// What it is called.
    #[must_use]
    pub fn id(&self) -> &str {
        self.job.id()
    }

    /// How it stands: completed, partial, failed, cancelled, or suspended.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        self.job.stage.into()
    }

    /// What it has come to, in numbers and reasons.
    #[must_use]
    pub fn report(&self) -> JobReport {
        report(&self.job)
    }

    /// What became of every item, in the order of the input, with what its last command gave. Read from
    /// the journal.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read.
    pub fn results(&self) -> Result<Vec<ItemResult>, EmbedError> {
        Ok(read_results(&*self.store, &self.job)?)
    }
}

impl ItemResult {
    /// What the item gave, read as JSON.
    ///
    /// # Errors
    ///
    /// When it gave nothing, or something else.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.output.as_deref().unwrap_or_default())
    }
}
