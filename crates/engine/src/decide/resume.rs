//! Somebody goes on with a job: what was found, and what the downtime has cost.

use undaunted_policy::{Reason, Then, Timestamp};

use super::facts::Facts;
use super::fail::{Stop, stop};
use super::words::with_last;
use crate::event::{Event, Restored, Resumed, Subject};
use crate::job::{Active, Stage};

pub(super) fn resume(facts: &mut Facts<'_>) {
    let job = facts.job;
    let planned = job.stage == Stage::Suspended;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut restored = Restored {
        running: count(job.running.len()),
        attempts: job.counts.attempts,
        ..Restored::default()
    };
    for step in &job.steps {
        let waiting = count(step.waiting.len());
        restored.waiting = restored.waiting.saturating_add(waiting);
        restored.settled = restored.settled.saturating_add(step.settled());
        restored.pending = restored.pending.saturating_add(step.pending());
    }
    facts.push(Event::JobResumed(Resumed {
        run: job.run.saturating_add(1),
        away: facts.now.since(job.last_at),
        planned,
        restored,
    }));
    if planned || job.is_stopping().is_some() {
        return;
    }
    for (step, state) in (0_u32..).zip(&job.steps) {
        let due = state.waiting.range(..=(facts.now, u32::MAX));
        for &(due, item) in due {
            if let Some(active) = job.active(step, item) {
                expire(facts, step, item, active, due);
            }
        }
    }
}

/// Unplanned downtime counts as waiting: a retry that was due too long ago is not made.
fn expire(facts: &mut Facts<'_>, step: u32, item: u32, active: &Active, due: Timestamp) {
    // The instant was settled when the retry was scheduled, by the terms that held then.
    let Some(expires) = active.expires.filter(|expires| facts.now > *expires) else {
        return;
    };
    let spent = active.progress.spent;
    let sentence = format!(
        "{} (spent {spent:?}, overdue {:?}, budget {:?})",
        Reason::RetryBudgetExpired.sentence(),
        facts.now.since(due),
        spent.saturating_add(expires.since(due)),
    );
    let of = Subject {
        step,
        item,
        command: active.command,
        attempt: active.attempts,
    };
    let why = Stop {
        reason: Reason::RetryBudgetExpired,
        then: Then::Stop,
        error: with_last(&sentence, &facts.last_error(active)),
        sum: None,
        rule: None,
    };
    stop(facts, of, active, &why);
}
