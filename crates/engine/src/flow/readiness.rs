//! Whether a step of a flow may start.

use crate::id::StepId;
use crate::job::{Job, StepStage};
use crate::workflow::AttributeRole;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// Another step may still set an attribute of this one.
    Waits,
    /// No step can set this required attribute any more.
    Unreachable(String),
}

/// A step on which no goal depends is never ready.
pub(crate) fn readiness(job: &Job, step: StepId) -> Readiness {
    let Some(call) = job.plan().call(step).filter(|_| job.is_planned(step)) else { return Readiness::Waits };
    let mut waits = false;
    for (name, attribute) in &call.attributes {
        let is_input = matches!(attribute.role, AttributeRole::Required | AttributeRole::Optional);
        if !is_input || job.attributes.contains_key(name) {
            continue;
        }
        if may_be_set(job, step, name) {
            waits = true;
        } else if attribute.role == AttributeRole::Required && attribute.default.is_none() {
            return Readiness::Unreachable(name.clone());
        }
    }
    if waits { Readiness::Waits } else { Readiness::Ready }
}

/// Whether a step that sets the attribute has not ended.
fn may_be_set(job: &Job, step: StepId, name: &str) -> bool {
    let needs = job.plan().step(step).into_iter().flat_map(|step| &step.needs);
    needs.map(|need| StepId::at(*need)).any(|need| {
        let sets_it = job.plan().call(need).is_some_and(|call| {
            let attribute = call.attributes.get(name);
            attribute.is_some_and(|attribute| attribute.role == AttributeRole::Output)
        });
        let open = job.step(need).is_some_and(|state| {
            matches!(state.stage, StepStage::Waiting | StepStage::Reading(_) | StepStage::Running)
        });
        sets_it && open && job.is_planned(need)
    })
}
