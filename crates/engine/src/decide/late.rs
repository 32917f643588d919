//! Answers a result that came too late: for an item that was given up, or that its step was complete without.
//!
//! It is recorded with what it says. Whether it counts is the operator's choice, made when the job was submitted
//! (`BEST_EFFORT_LATE_RESULT_POLICY`); if so, it changes counts, attributes and the end of the job, but starts
//! nothing again.

use undaunted_policy::Reason;

use super::advance::completed;
use super::draft::EventDraft;
use crate::event::{Event, ItemEvent, JobEvent, LateResult, StepEvent, StoredText};
use crate::flow::outputs;
use crate::id::{ItemId, StepId};
use crate::job::{Job, JobStage, StepStage};

pub(super) fn arrived(draft: &mut EventDraft<'_>, item: ItemId, result: &Result<String, String>) {
    let job = draft.job;
    if !job.may_report_late(item) {
        return;
    }
    let (reason, output, error) = match result {
        Ok(output) => (None, Some(output.clone()), None),
        // In place: a job that has ended keeps no more texts.
        Err(error) => (Some(Reason::Permanent), None, Some(StoredText::Itself(error.clone()))),
    };
    let counted = job.counts_late_result_of(item.step);
    let (step, index) = (item.step, item.index);
    draft.push(ItemEvent::LateResult(Box::new(LateResult { step, index, reason, counted, output, error })));
}

/// The step to which an event adds a success that came late.
pub(super) fn changed_step(event: &Event) -> Option<StepId> {
    let Event::Item(ItemEvent::LateResult(late)) = event else { return None };
    (late.counted && late.reason.is_none()).then_some(late.step)
}

/// What follows from a late success, in a job that has ended too: the step sets its attributes again, and the
/// job may have what it lacked.
pub(super) fn follow(job: &Job, step: StepId) -> Vec<Event> {
    let is_completed = job.step(step).is_some_and(|state| state.stage == StepStage::Completed);
    if !is_completed {
        return Vec::new();
    }
    let changed = outputs(job, step).into_iter().filter(|(name, value)| {
        let known = job.attributes.get(name);
        known.is_none_or(|known| known.step == Some(step) && known.value != *value)
    });
    let attributes = changed.map(|(name, value)| {
        let (value, unused) = (value.to_string(), None);
        StepEvent::AttributeSet { step, name, value, unused }
    });
    let mut events: Vec<Event> = attributes.map(Event::Step).collect();
    if job.stage == JobStage::Partial {
        let end = completed(job);
        events.extend(matches!(end, Event::Job(JobEvent::Completed(_))).then_some(end));
    }
    events
}
