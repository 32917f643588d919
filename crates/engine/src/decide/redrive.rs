//! Dead letters are tried again, or given up for good.

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::event::{Event, ItemEvent, JobEvent};
use crate::id::ItemId;
use crate::workflow::StepPhase;

pub(super) fn redrive(facts: &mut Facts<'_>, items: &[ItemId], reduce: bool) {
    let items = dead(facts, items);
    let steps = &facts.job.workflow().steps;
    // What comes after the map can be done again for its own sake.
    let again = reduce && steps.iter().any(|step| step.phase == StepPhase::Reduce);
    if items.is_empty() && !again {
        return;
    }
    if facts.job.stage.has_ended() {
        facts.push(Event::Job(JobEvent::Redriven { reduce }));
    }
    for ItemId { step, index } in items {
        facts.push(Event::Item(ItemEvent::Redriven { step, index }));
    }
}

pub(super) fn forget(facts: &mut Facts<'_>, items: &[ItemId]) {
    for ItemId { step, index } in dead(facts, items) {
        facts.push(Event::Item(ItemEvent::Dropped { step, index }));
    }
}

/// Those of them that are dead letters, each once.
fn dead(facts: &Facts<'_>, items: &[ItemId]) -> BTreeSet<ItemId> {
    let asked = items.iter().copied();
    asked
        .filter(|place| facts.job.dead.contains_key(place))
        .collect()
}
