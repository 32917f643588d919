//! Dead letters are redriven or dropped.

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::event::{ItemEvent, JobEvent};
use crate::id::ItemId;
use crate::workflow::StepPhase;

pub(super) fn redrive(facts: &mut Facts<'_>, items: &[ItemId], reduce: bool) {
    let items = dead(facts, items);
    let steps = &facts.job.workflow().steps;
    // The reduce steps can be repeated on their own.
    let again = reduce && steps.iter().any(|step| step.phase == StepPhase::Reduce);
    if items.is_empty() && !again {
        return;
    }
    if facts.job.stage.has_ended() {
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
    asked
        .filter(|place| facts.job.dead.contains_key(place))
        .collect()
}
