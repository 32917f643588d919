//! Redrives or drops dead letters.

use std::collections::BTreeSet;
use std::time::Duration;

use super::draft::EventDraft;
use crate::event::{ItemEvent, JobEvent};
use crate::id::{ItemId, StepId};
use crate::workflow::StepPhase;

pub(super) fn redrive(draft: &mut EventDraft<'_>, items: &[ItemId], reduce: bool, every: Option<Duration>) {
    let mut items = dead(draft, items);
    let steps = &draft.job.workflow().steps;
    let is_reduce =
        |step: StepId| steps.get(step.position()).is_some_and(|step| step.phase == StepPhase::Reduce);
    // The reduce steps can run again without any redriven item.
    let again = reduce && steps.iter().any(|step| step.phase == StepPhase::Reduce);
    let has_ended = draft.job.stage.has_ended();
    if again && has_ended {
        // Steps that start again lose their dead letters.
        items.retain(|item| !is_reduce(item.step));
    }
    if items.is_empty() && !again {
        return;
    }
    if has_ended {
        draft.push(JobEvent::Redriven { reduce });
    }
    if draft.job.starts.pace.map(|pace| pace.every) != every {
        draft.push(JobEvent::StartsSpaced { every });
    }
    for ItemId { step, index } in items {
        draft.push(ItemEvent::Redriven { step, index });
    }
}

pub(super) fn forget(draft: &mut EventDraft<'_>, items: &[ItemId]) {
    for ItemId { step, index } in dead(draft, items) {
        draft.push(ItemEvent::Dropped { step, index });
    }
}

/// Those that are dead letters, without duplicates.
fn dead(draft: &EventDraft<'_>, items: &[ItemId]) -> BTreeSet<ItemId> {
    items.iter().copied().filter(|item| draft.job.dead.contains_key(item)).collect()
}
