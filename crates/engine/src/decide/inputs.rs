//! Answers the input of a step: its items were read, or could not be.

use undaunted_policy::Reason;

use super::draft::EventDraft;
use crate::event::{Event, NewItem, SpooledPart, StepEvent};
use crate::id::StepId;
use crate::job::StepStage;

/// How many bytes of items go into one record.
const RECORD_BYTES: usize = 1 << 20;

pub(super) fn read(draft: &mut EventDraft<'_>, step: StepId, items: &[NewItem]) {
    if is_reading(draft, step) {
        for event in records_of(step, items) {
            draft.push(event);
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
                let fits = bytes < RECORD_BYTES;
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
    draft: &mut EventDraft<'_>,
    step: StepId,
    reason: Reason,
    error: &str,
    stderr: Option<SpooledPart>,
) {
    if !is_reading(draft, step) {
        return;
    }
    if reason == Reason::Interrupted && draft.job.is_stopping().is_none() {
        // Nothing depends on items before they are read, so read them again.
        draft.push(StepEvent::Started { step, start: Some(draft.job.starts.next) });
    } else {
        let error = draft.text(error);
        draft.push(StepEvent::InputFailed { step, reason, error, stderr: stderr.map(Box::new) });
    }
}

fn is_reading(draft: &EventDraft<'_>, step: StepId) -> bool {
    let stage = draft.job.step(step).map(|state| state.stage);
    matches!(stage, Some(StepStage::Reading(_)))
}
