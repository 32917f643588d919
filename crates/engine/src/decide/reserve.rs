//! Reserved starts: put on record before a slot is free, begun by the keeper, or withdrawn.

use undaunted_policy::Timestamp;

use super::draft::EventDraft;
use crate::event::{AttemptId, AttemptStarted, ItemEvent, ReservationWithdrawn, StartReserved};
use crate::id::{AttemptNumber, ItemId, StartId};
use crate::job::Job;

pub(super) fn reserve(draft: &mut EventDraft<'_>, item: ItemId) {
    let job = draft.job;
    // In input order: only the next one.
    if job.reservable(draft.now).first() == Some(&item)
        && let Some(of) = first_attempt(job, item)
    {
        draft.push(ItemEvent::StartReserved(StartReserved { of, start: job.starts.next }));
    }
}

/// The attempt counts from now on; its limits run since `at`.
pub(super) fn begun(draft: &mut EventDraft<'_>, start: StartId, at: Timestamp) {
    let job = draft.job;
    if let Some(reserved) = job.starts.reserved.get(&start)
        && let Some(of) = first_attempt(job, reserved.item)
    {
        // The clocks of two processes may differ.
        let began = Some(at.max(reserved.at).min(draft.now.max(reserved.at)));
        draft.push(ItemEvent::AttemptStarted(AttemptStarted { of, start, pass: None, began }));
    }
}

pub(super) fn not_begun(draft: &mut EventDraft<'_>, start: StartId) {
    let job = draft.job;
    if let Some(reserved) = job.starts.reserved.get(&start)
        && let Some(of) = first_attempt(job, reserved.item)
    {
        draft.push(ItemEvent::ReservationWithdrawn(ReservationWithdrawn { of, start }));
    }
}

fn first_attempt(job: &Job, item: ItemId) -> Option<AttemptId> {
    Some(AttemptId::new(item, job.plan().first(item.step)?, AttemptNumber(1)))
}
