//! Dead letters are tried again, or given up for good.

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::event::Event;
use crate::workflow::Phase;

pub(super) fn redrive(facts: &mut Facts<'_>, items: &[(u32, u32)], reduce: bool) {
    let items = dead(facts, items);
    let steps = &facts.job.workflow().steps;
    // What comes after the map can be done again for its own sake.
    let again = reduce && steps.iter().any(|step| step.phase == Phase::Reduce);
    if items.is_empty() && !again {
        return;
    }
    if facts.job.stage.has_ended() {
        facts.push(Event::JobRedriven { reduce });
    }
    for (step, item) in items {
        facts.push(Event::ItemRedriven { step, item });
    }
}

pub(super) fn forget(facts: &mut Facts<'_>, items: &[(u32, u32)]) {
    for (step, item) in dead(facts, items) {
        facts.push(Event::ItemDropped { step, item });
    }
}

/// Those of them that are dead letters, each once.
fn dead(facts: &Facts<'_>, items: &[(u32, u32)]) -> BTreeSet<(u32, u32)> {
    let asked = items.iter().copied();
    asked
        .filter(|place| facts.job.dead.contains_key(place))
        .collect()
}
