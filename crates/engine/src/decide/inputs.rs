//! Answers the input of a step: its items were read, or could not be.

use std::collections::BTreeSet;

use undaunted_policy::Reason;

use super::draft::EventDraft;
use crate::event::{Event, NewItem, SpooledPart, StepEvent};
use crate::id::{CommandId, StepId};
use crate::job::StepStage;

/// How many bytes of items go into one record.
const RECORD_BYTES: usize = 1 << 20;

pub(super) fn read(draft: &mut EventDraft<'_>, step: StepId, items: &[NewItem], warning: Option<&str>) {
    if is_reading(draft, step) {
        let unknown = unknown_names(draft, step, items);
        let warning: Vec<&str> = warning.into_iter().chain(unknown.as_deref()).collect();
        let warning = (!warning.is_empty()).then(|| warning.join("; "));
        for event in records_of(step, items, warning.as_deref()) {
            draft.push(event);
        }
    }
}

/// Says which items of an imported state the input does not have. An input that was known at the import was compared
/// with the state then.
fn unknown_names(draft: &EventDraft<'_>, step: StepId, items: &[NewItem]) -> Option<String> {
    let job = draft.job;
    let mut imported =
        job.imported.keys().filter(|(command, _)| job.plan().step_of(*command) == step).peekable();
    imported.peek()?;
    let mut known: Vec<&str> = items.iter().map(|item| item.identity.as_str()).collect();
    known.sort_unstable();
    // Both are sorted, so a million names are compared in one pass for each command.
    let mut unknown = BTreeSet::new();
    let mut rest = (CommandId::default(), known.as_slice());
    for (command, name) in imported {
        if rest.0 != *command {
            rest = (*command, known.as_slice());
        }
        let before = rest.1.iter().take_while(|known| **known < name.as_str()).count();
        rest.1 = rest.1.get(before..).unwrap_or_default();
        if rest.1.first() != Some(&name.as_str()) {
            unknown.insert(name.as_str());
        }
    }
    let mut unknown = unknown.into_iter();
    let first = unknown.next()?;
    let more = match unknown.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("the imported state names items that the input does not have: `{first}`{more}"))
}

pub(super) fn records_of(step: StepId, items: &[NewItem], warning: Option<&str>) -> Vec<Event> {
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
        let last = later.is_empty();
        let warning = warning.filter(|_| last).map(str::to_owned);
        events.push(Event::Step(StepEvent::ItemsRead { step, items: now.to_vec(), last, warning }));
        if last {
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
