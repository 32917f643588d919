//! Resumes a job: records what was left of its work, and stops retries that expired during the downtime.

use undaunted_policy::{Reason, Timestamp};

use super::draft::EventDraft;
use super::fail::{Stop, stop};
use super::words::with_last;
use crate::event::{JobEvent, JobResumed, ResumedWork, RetryArithmetic};
use crate::id::{ItemId, StepId};
use crate::job::{ActiveItem, Activity, Job, JobStage, StepStage};

pub(super) fn resume(draft: &mut EventDraft<'_>, seen: Option<Timestamp>) {
    let job = draft.job;
    let left = left_at(job, seen, draft.now);
    let planned = job.stage == JobStage::Suspended;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut restored = ResumedWork {
        running: count(job.starts.running.len()),
        attempts: job.counts.attempts,
        ..ResumedWork::default()
    };
    for step in &job.steps {
        let waiting = count(step.waiting.len());
        restored.waiting = restored.waiting.saturating_add(waiting);
        let held = restored.held.unwrap_or_default();
        restored.held = Some(held.saturating_add(step.held.len()));
    }
    // Counted as in reports: the items of a map, or the commands of a list.
    for (number, step) in job.counted() {
        restored.settled = restored.settled.saturating_add(step.settled());
        // A command of a list is one item, even before its turn.
        let to_come = step.stage == StepStage::Waiting && !job.plan().is_map(number);
        let pending = step.pending().saturating_add(to_come.into());
        restored.pending = restored.pending.saturating_add(pending);
    }
    restored.held = restored.held.filter(|held| *held > 0);
    draft.push(JobEvent::Resumed(JobResumed {
        run: job.run.saturating_add(1),
        away: draft.now.since(left),
        planned,
        work: restored,
    }));
    if planned || job.is_stopping().is_some() {
        return;
    }
    for (step, state) in StepId::all().zip(&job.steps) {
        for (_, item) in state.waiting.due_by(draft.now) {
            let item = step.item(item);
            if let Some(active) = job.active(item) {
                expire(draft, item, active, left);
            }
        }
    }
}

fn expire(draft: &mut EventDraft<'_>, item: ItemId, active: &ActiveItem, left: Timestamp) {
    let Some(sum) = expired(draft.job, active, left, draft.now) else { return };
    let error = with_last(&expired_in_words(&sum), &draft.last_error(active));
    let why = Stop { sum: Some(sum), ..Stop::because(Reason::RetryBudgetExpired, error) };
    stop(draft, active.last_attempt(item), active, &why);
}

/// The arithmetic of a retry that is refused because it is overdue by too much: unplanned downtime counts as
/// waiting. The time for which a due retry waited for a slot while the job ran is not downtime. `left` is
/// when the owner of the job was last known to run.
pub(crate) fn expired(
    job: &Job,
    active: &ActiveItem,
    left: Timestamp,
    now: Timestamp,
) -> Option<RetryArithmetic> {
    let Activity::Waiting(due) = active.activity else { return None };
    // The expiry was computed when the retry was scheduled, by the terms in force then.
    let queued = left.since(due.max(job.times.resumed_at));
    let expires = active.expires()?;
    if now <= expires.after(queued) {
        return None;
    }
    let spent = active.progress().spent;
    let overdue = now.since(due).saturating_sub(queued);
    let policy = job.plan().command(active.command);
    Some(RetryArithmetic {
        retry: active.progress().retries,
        allowed: policy.and_then(|command| command.retry.policy.bound().retries()),
        spent_before: spent,
        spent_after: spent.saturating_add(overdue),
        budget: Some(spent.saturating_add(expires.since(due))),
        expires: Some(expires),
        ..RetryArithmetic::default()
    })
}

/// Names only the budget, which is equal for all items of a step, so that the text of a thousand items that
/// expire together is stored once.
pub(crate) fn expired_in_words(sum: &RetryArithmetic) -> String {
    let sentence = Reason::RetryBudgetExpired.sentence();
    format!("{sentence} (budget {:?})", sum.budget.unwrap_or_default())
}

/// When the owner of a job was last known to run.
pub(crate) fn left_at(job: &Job, seen: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let run_until = job.times.run_until;
    // The clock may have been set back.
    seen.unwrap_or(run_until).clamp(run_until, now.max(run_until))
}
