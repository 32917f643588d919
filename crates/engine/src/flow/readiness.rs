//! Whether a step may begin.

use crate::id::StepId;
use crate::job::{Job, StepStage};
use crate::workflow::AttributeRole;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// An attribute it takes may still come.
    Waits,
    /// This required attribute can no longer come.
    Unreachable(String),
}

/// A step that leads to no goal never begins.
pub(crate) fn readiness(job: &Job, step: StepId) -> Readiness {
    let Some(call) = job.plan().call(step).filter(|_| job.is_planned(step)) else {
        return Readiness::Waits;
    };
    let mut waits = false;
    for (name, taken) in &call.attributes {
        let taking = matches!(taken.role, AttributeRole::Required | AttributeRole::Optional);
        if !taking || job.attributes.contains_key(name) {
            continue;
        }
        if may_come(job, step, name) {
            waits = true;
        } else if taken.role == AttributeRole::Required && taken.default.is_none() {
            return Readiness::Unreachable(name.clone());
        }
    }
    if waits { Readiness::Waits } else { Readiness::Ready }
}

/// Whether a step that gives the attribute has not ended.
fn may_come(job: &Job, step: StepId, name: &str) -> bool {
    let givers = job.plan().step(step).map(|step| step.needs.iter());
    let givers = givers.into_iter().flatten();
    let mut givers = givers.map(|giver| StepId::at(*giver));
    givers.any(|giver| {
        let has_it = job.plan().call(giver).is_some_and(|call| {
            let given = call.attributes.get(name);
            given.is_some_and(|given| given.role == AttributeRole::Output)
        });
        let open = job.step(giver).is_some_and(|state| {
            matches!(state.stage, StepStage::Waiting | StepStage::Reading(_) | StepStage::Running)
        });
        has_it && open && job.is_planned(giver)
    })
}
