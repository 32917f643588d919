//! The records of the catalog: read, appended, and derived from a job.

use undaunted_engine::catalog::{CatalogEvent, CatalogRecord, FlowStatus};
use undaunted_engine::job::{Job, JobStage};
use undaunted_store::{AggregateId, Append, AppendError, Epoch, Store, Version};

use crate::JournalError;

pub const FAMILY: &str = "catalog";
pub const ID: &str = "catalog";

pub(super) fn aggregate() -> Result<AggregateId, JournalError> {
    // Neither word is empty, so this does not happen; an error costs less than a panic.
    AggregateId::new(FAMILY, ID).map_err(|error| JournalError::CatalogWriter { why: error.to_string() })
}

/// Calls `each` with the records after a version, oldest first, up to the first that cannot be read.
pub(super) fn follow(
    store: &dyn Store,
    after: Version,
    mut each: impl FnMut(Version, CatalogRecord),
) -> Result<(), JournalError> {
    for read in store.read(&aggregate()?, after)? {
        let (version, bytes) = read?;
        let record =
            CatalogRecord::decode(&bytes).map_err(|why| JournalError::CatalogRecord { version, why })?;
        each(version, record);
    }
    Ok(())
}

pub fn records(store: &dyn Store, after: Version) -> Result<Vec<(Version, CatalogRecord)>, JournalError> {
    let mut found = Vec::new();
    follow(store, after, |version, record| {
        found.push((version, record));
    })?;
    Ok(found)
}

/// The catalog is never claimed, so it has only one epoch.
pub(super) fn append(after: Version, records: &[CatalogRecord]) -> Result<Append, JournalError> {
    let records = records.iter().map(CatalogRecord::encode).collect();
    Ok(Append::new(aggregate()?, after, Epoch::UNCLAIMED, records))
}

/// Whether another process has changed the catalog first.
pub(super) fn is_conflict(error: &AppendError) -> bool {
    matches!(error, AppendError::Conflict { aggregate, .. } if aggregate.family() == FAMILY)
}

/// None for a job that is not a flow.
pub fn activated(job: &Job) -> Option<CatalogEvent> {
    job.workflow().flow.as_ref()?;
    let run = job.submitted().flow.as_ref();
    let parent = run.and_then(|run| run.parent.as_ref());
    Some(CatalogEvent::FlowActivated {
        flow: job.id().to_owned(),
        since: job.times.submitted_at,
        labels: run.map(|run| run.labels.clone()).unwrap_or_default(),
        parent: parent.map(|parent| parent.flow.clone()),
    })
}

/// None for a flow that has not ended, and for a job that is not a flow.
pub fn deactivated(job: &Job) -> Option<CatalogEvent> {
    job.workflow().flow.as_ref()?;
    let status = match job.stage {
        JobStage::Completed => FlowStatus::Completed,
        JobStage::Partial | JobStage::Failed | JobStage::Cancelled => FlowStatus::Failed,
        JobStage::Running | JobStage::Stopping(_) | JobStage::Suspended => return None,
    };
    let error = job.first_failure();
    let error = error.map(|failure| job.texts.read(&failure.error).to_owned());
    Some(CatalogEvent::FlowDeactivated {
        flow: job.id().to_owned(),
        status,
        error: error.filter(|_| status == FlowStatus::Failed),
        ended: job.times.last_at,
    })
}
