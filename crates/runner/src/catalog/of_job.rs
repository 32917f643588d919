//! What the catalog says of a job.

use undaunted_engine::catalog::{CatalogEvent, FlowStatus};
use undaunted_engine::job::{Job, JobStage};

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
        JobStage::Completed | JobStage::Partial => FlowStatus::Completed,
        JobStage::Failed | JobStage::Cancelled => FlowStatus::Failed,
        JobStage::Running | JobStage::Stopping(_) | JobStage::Suspended => return None,
    };
    let error = job.failures.failure.as_ref();
    let error = error.map(|failure| job.texts.read(&failure.error).to_owned());
    Some(CatalogEvent::FlowDeactivated {
        flow: job.id().to_owned(),
        status,
        error: error.filter(|_| status == FlowStatus::Failed),
        ended: job.times.last_at,
    })
}
