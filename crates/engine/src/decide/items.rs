//! The items of a map were read, or could not be.

use undaunted_policy::Reason;

use super::facts::Facts;
use crate::event::{Event, NewItem, SpooledPart, StepEvent};
use crate::id::StepId;
use crate::job::StepStage;

const RECORD: usize = 1 << 20;

pub(super) fn read(facts: &mut Facts<'_>, step: StepId, items: &[NewItem]) {
    if is_reading(facts, step) {
        for event in records_of(step, items) {
            facts.push(event);
        }
    }
}

pub(super) fn records_of(step: StepId, items: &[NewItem]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut rest = items;
    loop {
        let mut bytes = 0_usize;
        let fits = rest
            .iter()
            .take_while(|item| {
                let fits = bytes < RECORD;
                let size = item.identity.len().saturating_add(item.input.len());
                bytes = bytes.saturating_add(size);
                fits
            })
            .count();
        let (now, later) = rest.split_at_checked(fits).unwrap_or((rest, &[]));
        events.push(Event::Step(StepEvent::ItemsRead { step, items: now.to_vec(), last: later.is_empty() }));
        if later.is_empty() {
            return events;
        }
        rest = later;
    }
}

pub(super) fn failed(
    facts: &mut Facts<'_>,
    step: StepId,
    reason: Reason,
    error: &str,
    stderr: Option<SpooledPart>,
) {
    if !is_reading(facts, step) {
        return;
    }
    if reason == Reason::Interrupted && facts.job.is_stopping().is_none() {
        // Nothing depends on unread items, so they are read again.
        facts.push(StepEvent::Started { step, start: Some(facts.job.starts.next) });
    } else {
        let error = facts.text(error);
        facts.push(StepEvent::InputFailed { step, reason, error, stderr: stderr.map(Box::new) });
    }
}

fn is_reading(facts: &Facts<'_>, step: StepId) -> bool {
    let stage = facts.job.step(step).map(|state| state.stage);
    matches!(stage, Some(StepStage::Reading(_)))
}
