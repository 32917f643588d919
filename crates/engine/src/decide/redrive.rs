//! Dead letters are redriven or dropped.

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::event::{ItemEvent, JobEvent};
use crate::id::{ItemId, StepId};
use crate::workflow::StepPhase;

pub(super) fn redrive(facts: &mut Facts<'_>, items: &[ItemId], reduce: bool) {
    let mut items = dead(facts, items);
    let steps = &facts.job.workflow().steps;
    let is_reduce = |step: StepId| {
        let found = steps.get(step.position());
        found.is_some_and(|found| found.phase == StepPhase::Reduce)
    };
    // The reduce steps can be repeated on their own.
    let again = reduce && steps.iter().any(|step| step.phase == StepPhase::Reduce);
    let has_ended = facts.job.stage.has_ended();
    if again && has_ended {
        // Of steps that begin again nothing is left that could be redriven.
        items.retain(|item| !is_reduce(item.step));
    }
    if items.is_empty() && !again {
        return;
    }
    if has_ended {
        facts.push(JobEvent::Redriven { reduce });
    }
    for ItemId { step, index } in items {
        facts.push(ItemEvent::Redriven { step, index });
    }
}

pub(super) fn forget(facts: &mut Facts<'_>, items: &[ItemId]) {
    for ItemId { step, index } in dead(facts, items) {
        facts.push(ItemEvent::Dropped { step, index });
    }
}

/// Those that are dead letters, without duplicates.
fn dead(facts: &Facts<'_>, items: &[ItemId]) -> BTreeSet<ItemId> {
    let asked = items.iter().copied();
    asked.filter(|place| facts.job.dead.contains_key(place)).collect()
}
