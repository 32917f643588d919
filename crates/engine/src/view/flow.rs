//! A flow in the HTTP API.
//!
//! Made from the state of the job and from its projection, which must follow all items. All times are stored ones.

use serde_json::{Map, Value, json};
use undaunted_policy::Reason;

use super::flow_item::{put_some, token, work_item};
use super::flow_plan::flow_plan;
use super::projection::{Projection, StepFailure, StepHistory};
use super::time::rfc3339;
use crate::catalog::FlowEntry;
use crate::flow::outputs;
use crate::id::StepId;
use crate::job::{Job, JobStage, StepStage};

/// Labels and parent come from the catalog entry of the flow.
pub fn flow(job: &Job, projection: &Projection, entry: Option<&FlowEntry>) -> Value {
    let flow = job.workflow().flow.as_ref();
    let planned = flow.into_iter().flat_map(|flow| &flow.plan);
    let executions = planned.filter_map(|place| {
        let step = StepId::at(*place);
        let name = job.plan().step(step)?.name.clone();
        Some((name, execution(job, projection, step)?))
    });
    let mut metadata = json!({});
    put_some(&mut metadata, "parent_flow_id", entry.and_then(|entry| entry.parent.as_ref()));
    let mut view = json!({
        "attributes": attributes(job, projection),
        "completed_at": projection.end.as_ref().map(|end| rfc3339(end.at)),
        "created_at": rfc3339(job.times.submitted_at),
        "executions": executions.collect::<Map<_, _>>(),
        "id": job.id(),
        "labels": entry.map(|entry| entry.labels.clone()).unwrap_or_default(),
        "last_updated": rfc3339(job.times.last_at),
        "metadata": metadata,
        "plan": flow_plan(job),
        "status": status(job.stage),
    });
    put_some(&mut view, "error", error(job, projection));
    view
}

fn attributes(job: &Job, projection: &Projection) -> Map<String, Value> {
    let attributes = job.attributes.iter().map(|(name, given)| {
        let step = given.step.and_then(|step| job.plan().step(step));
        let set_at = projection.set_at.get(name).copied();
        let view = json!({
            "set_at": rfc3339(set_at.unwrap_or(job.times.submitted_at)),
            // Null for an attribute in `init`.
            "step": step.map(|step| step.name.as_str()),
            "value": given.value,
        });
        (name.clone(), view)
    });
    attributes.collect()
}

/// The execution of a step, with its work items by token.
fn execution(job: &Job, projection: &Projection, step: StepId) -> Option<Value> {
    let state = job.step(step)?;
    let items = state.items.iter().map(|(index, found)| {
        let item = step.item(index);
        let history = projection.items.items.get(&item);
        (token(job, projection, item), work_item(state, index, found, history))
    });
    let none = StepHistory::default();
    let history = projection.steps.get(&step).unwrap_or(&none);
    let mut view = json!({
        "completed_at": history.ended.map(rfc3339),
        "inputs": history.inputs,
        "started_at": history.started.map(rfc3339),
        "status": stage(state.stage),
        "work_items": items.collect::<Map<_, _>>(),
    });
    put_some(&mut view, "duration", history.millis());
    put_some(&mut view, "error", history.error());
    put_some(&mut view, "outputs", (state.stage == StepStage::Completed).then(|| outputs_of(job, step)));
    Some(view)
}

/// What a step has given, also for attributes that had a value already.
pub(super) fn outputs_of(job: &Job, step: StepId) -> Map<String, Value> {
    outputs(job, step).into_iter().collect()
}

/// The attributes that a step has set.
pub(super) fn given(job: &Job, step: StepId) -> Map<String, Value> {
    let attributes = job.attributes.iter();
    attributes
        .filter(|(_, given)| given.step == Some(step))
        .map(|(name, given)| (name.clone(), given.value.clone()))
        .collect()
}

/// Why the flow has failed.
pub(super) fn error(job: &Job, projection: &Projection) -> Option<String> {
    if !matches!(job.stage, JobStage::Partial | JobStage::Failed | JobStage::Cancelled) {
        return None;
    }
    let end = projection.end.as_ref()?;
    if job.stage == JobStage::Partial {
        return end.error.clone();
    }
    let failed = projection.failed.filter(|_| job.failures.stopped.is_none());
    let failed = failed.and_then(|step| {
        let error = projection.steps.get(&step)?.error()?;
        Some((&job.plan().step(step)?.name, error))
    });
    if let Some((step, error)) = failed {
        return Some(format!("step {step} failed: {error}"));
    }
    let reason = end.reason.map(Reason::sentence);
    Some(reason.or(end.error.as_deref()).unwrap_or_default().to_owned())
}

impl StepHistory {
    pub(super) fn error(&self) -> Option<String> {
        Some(match self.failure.as_ref()? {
            StepFailure::Input(error) => error.clone(),
            StepFailure::Unreachable(missing) => {
                format!("required attribute `{missing}` can no longer be set")
            }
            StepFailure::Items | StepFailure::Cancelled => self.items_error.clone().unwrap_or_default(),
        })
    }

    /// The duration of a step that has ended.
    pub(super) fn millis(&self) -> Option<u64> {
        let took = self.ended?.since(self.started?);
        Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    }
}

const fn status(stage: JobStage) -> &'static str {
    match stage {
        JobStage::Completed => "completed",
        // Argyll has no word for a flow below the minimum of a completion rule; its attributes are set.
        JobStage::Partial | JobStage::Failed | JobStage::Cancelled => "failed",
        JobStage::Running | JobStage::Stopping(_) | JobStage::Suspended => "active",
    }
}

const fn stage(stage: StepStage) -> &'static str {
    match stage {
        StepStage::Waiting => "pending",
        StepStage::Reading(_) | StepStage::Running => "active",
        StepStage::Completed => "completed",
        StepStage::Failed => "failed",
        StepStage::Skipped => "skipped",
    }
}
