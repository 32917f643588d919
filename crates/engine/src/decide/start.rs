//! Starts the attempt of a ready item, unless a deadline, a breaker or the job's stage forbids it.

use undaunted_policy::{Reason, RuleAction};

use super::draft::EventDraft;
use super::fail::{Stop, stop_unless_repeated};
use super::hold::{Passage, pass};
use super::words::with_last;
use crate::breaker::BreakerAnswer;
use crate::event::{AttemptId, AttemptStarted, ItemEvent, JobEvent};
use crate::id::{AttemptNumber, ItemId, StepId};
use crate::job::{ActiveItem, Activity, ItemState, Job, JobStage, StepState};

pub(super) fn start(draft: &mut EventDraft<'_>, item: ItemId, refused: Option<&str>, gate: &BreakerAnswer) {
    let job = draft.job;
    if job.stage != JobStage::Running || job.times.paused.is_some() || !has_room(job, item) {
        return;
    }
    if job.deadline().is_some_and(|end| end < draft.now) {
        // No `Woke` input has reported the deadline yet.
        return draft.push(JobEvent::Stopping { reason: Reason::Deadline });
    }
    let fresh;
    let active = match job.item(item) {
        Some(ItemState::Pending) if is_next(job, item) => {
            let Some(first) = job.plan().first(item.step) else { return };
            fresh = job.shared_positions.fresh_item(first);
            &fresh
        }
        Some(ItemState::Active(active)) if active.is_ready(draft.now) => active,
        Some(ItemState::Active(active)) if active.activity == Activity::Held => active,
        None | Some(ItemState::Pending | ItemState::Active(_) | ItemState::Settled(_)) => return,
    };
    let of = active.last_attempt(item);
    if let Some(why) = forbidden(draft, item.step, active, refused) {
        return stop_unless_repeated(draft, of, active, &why);
    }
    let pass = match pass(draft, of, active, gate) {
        Passage::Admitted(pass) => pass,
        Passage::Held => return,
        Passage::Refused(why) => return stop_unless_repeated(draft, of, active, &why),
    };
    draft.push(ItemEvent::AttemptStarted(AttemptStarted {
        of: AttemptId { attempt: AttemptNumber(active.attempts.saturating_add(1)), ..of },
        start: job.starts.next,
        pass,
        began: None,
    }));
}

fn has_room(job: &Job, item: ItemId) -> bool {
    let state = job.step(item.step).filter(|_| job.is_busy_step(item.step));
    let room = state.is_some_and(|state| job.free_slots(item.step, state) > 0);
    room && job.end_reason(item).is_none()
}

/// Items start in input order: the cursor never returns to one that was passed over.
fn is_next(job: &Job, item: ItemId) -> bool {
    let next = |state: &StepState| state.unstarted().next() == Some(item.index);
    job.step(item.step).is_some_and(next)
}

fn forbidden(
    draft: &EventDraft<'_>,
    step: StepId,
    active: &ActiveItem,
    refused: Option<&str>,
) -> Option<Stop> {
    let deadline = draft.job.deadline_of(step, active);
    let overdue = deadline.is_some_and(|deadline| deadline < draft.now);
    let (reason, then, error) = match refused {
        // A handler cannot help with a command that cannot be built.
        Some(why) => (Reason::Permanent, RuleAction::DeadLetter, why.to_owned()),
        None if active.is_used_up() => {
            let noun = if active.attempts == 1 { "attempt" } else { "attempts" };
            let sentence = format!(
                "{} before the state was imported ({} {noun})",
                Reason::Attempts.sentence(),
                active.attempts
            );
            let last = active.error.as_ref().map_or("", |last| draft.job.texts.read(last));
            (Reason::Attempts, RuleAction::Stop, with_last(&sentence, last))
        }
        None if overdue => {
            let error = with_last(Reason::Deadline.sentence(), &draft.last_error(active));
            (Reason::Deadline, RuleAction::Stop, error)
        }
        None => return None,
    };
    Some(Stop { reason, then, error, sum: None, rule: None })
}
