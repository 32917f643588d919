//! Redrives or drops dead letters.

use std::collections::BTreeSet;

use super::builder::DecisionBuilder;
use crate::event::{ItemEvent, JobEvent};
use crate::id::{ItemId, StepId};
use crate::workflow::StepPhase;

pub(super) fn redrive(decision: &mut DecisionBuilder<'_>, items: &[ItemId], reduce: bool) {
    let mut items = dead(decision, items);
    let steps = &decision.job.workflow().steps;
    let is_reduce =
        |step: StepId| steps.get(step.position()).is_some_and(|step| step.phase == StepPhase::Reduce);
    // The reduce steps can run again without any redriven item.
    let again = reduce && steps.iter().any(|step| step.phase == StepPhase::Reduce);
    let has_ended = decision.job.stage.has_ended();
    if again && has_ended {
        // Steps that start again lose their dead letters.
        items.retain(|item| !is_reduce(item.step));
    }
    if items.is_empty() && !again {
        return;
    }
    if has_ended {
        decision.push(JobEvent::Redriven { reduce });
    }
    for ItemId { step, index } in items {
        decision.push(ItemEvent::Redriven { step, index });
    }
}

pub(super) fn forget(decision: &mut DecisionBuilder<'_>, items: &[ItemId]) {
    for ItemId { step, index } in dead(decision, items) {
        decision.push(ItemEvent::Dropped { step, index });
    }
}

/// Those that are dead letters, without duplicates.
fn dead(decision: &DecisionBuilder<'_>, items: &[ItemId]) -> BTreeSet<ItemId> {
    items.iter().copied().filter(|item| decision.job.dead.contains_key(item)).collect()
}
