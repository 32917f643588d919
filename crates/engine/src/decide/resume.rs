//! A job is resumed: what was restored, and which retries expired during the downtime.

use undaunted_policy::{Reason, Then, Timestamp};

use super::facts::Facts;
use super::fail::{Stop, stop};
use super::words::with_last;
use crate::event::{JobEvent, Restored, Resumed, Sum};
use crate::id::StepId;
use crate::job::{Active, Stage, StepStage};

pub(super) fn resume(facts: &mut Facts<'_>, seen: Option<Timestamp>) {
    let job = facts.job;
    // The clock may have been set back.
    let left = seen
        .unwrap_or(job.times.run_until)
        .clamp(job.times.run_until, facts.now.max(job.times.run_until));
    let planned = job.stage == Stage::Suspended;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut restored = Restored {
        running: count(job.starts.running.len()),
        attempts: job.counts.attempts,
        ..Restored::default()
    };
    for step in &job.steps {
        let waiting = count(step.waiting.len());
        restored.waiting = restored.waiting.saturating_add(waiting);
        let held = restored.held.unwrap_or_default();
        restored.held = Some(held.saturating_add(step.held.len()));
    }
    // As reports count: the items of a map, or the commands of a list.
    for (number, step) in job.counted() {
        restored.settled = restored.settled.saturating_add(step.settled());
        // A command of a list is one item, even before its turn.
        let to_come = step.stage == StepStage::Waiting && !job.plan().is_map(number);
        let pending = step.pending().saturating_add(to_come.into());
        restored.pending = restored.pending.saturating_add(pending);
    }
    restored.held = restored.held.filter(|held| *held > 0);
    facts.push(JobEvent::Resumed(Resumed {
        run: job.run.saturating_add(1),
        away: facts.now.since(left),
        planned,
        restored,
    }));
    if planned || job.is_stopping().is_some() {
        return;
    }
    for (step, state) in StepId::all().zip(&job.steps) {
        for (due, item) in state.waiting.due_by(facts.now) {
            if let Some(active) = job.active(step.item(item)) {
                expire(facts, step, item, active, [due, left]);
            }
        }
    }
}

/// Unplanned downtime counts as waiting: a retry overdue by too much is not made. Time in which a due retry
/// waited for a slot while the job ran is not downtime.
fn expire(
    facts: &mut Facts<'_>,
    step: StepId,
    item: u32,
    active: &Active,
    [due, left]: [Timestamp; 2],
) {
    // The expiry was fixed when the retry was scheduled, by the terms of that time.
    let queued = left.since(due.max(facts.job.times.resumed_at));
    let expires = active
        .expires()
        .map(|expires| (expires, expires.after(queued)));
    let Some((expires, _)) = expires.filter(|(_, late)| facts.now > *late) else {
        return;
    };
    let spent = active.progress().spent;
    let budget = spent.saturating_add(expires.since(due));
    // A thousand items expire together: what differs is in the numbers, so the text is stored once.
    let sentence = format!(
        "{} (budget {budget:?})",
        Reason::RetryBudgetExpired.sentence()
    );
    let of = active.last_attempt(step.item(item));
    let why = Stop {
        reason: Reason::RetryBudgetExpired,
        then: Then::Stop,
        error: with_last(&sentence, &facts.last_error(active)),
        sum: Some(Sum {
            retry: active.progress().retries,
            spent_before: spent,
            spent_after: spent.saturating_add(facts.now.since(due.max(left))),
            budget: Some(budget),
            expires: Some(expires),
            ..Sum::default()
        }),
        rule: None,
    };
    stop(facts, of, active, &why);
}
