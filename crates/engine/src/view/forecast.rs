//! The remaining retries of an item that keeps failing, and the limit that ends them.
//!
//! Calls the functions that decide, with the current state of the item, so the forecast is what the process that runs
//! the job would do or, without one, the next resume. It assumes that attempts fail at once and like the last one, and
//! that no other item uses the pool; text must say so. A held item starts when its breaker may be probed, and an item
//! that a rule would hold waits for the recovery timeout.

use undaunted_policy::{Decision, Failure, FailureCause, Reason, RetryState, Timestamp, Verdict, verdict};

use super::context::ViewContext;
use super::hold::HoldView;
use crate::breaker::BreakerState;
use crate::decide::{expired, expired_in_words, left_at};
use crate::event::RetryArithmetic;
use crate::id::ItemId;
use crate::job::{ActiveItem, Activity, JobStage};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    pub retries: Vec<Verdict>,
    /// `None` if the forecast has its maximum length.
    pub stop: Option<ForecastStop>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForecastStop {
    /// `None` if a rule skips the item or makes it a dead letter.
    pub reason: Option<Reason>,
    pub sentence: String,
    pub sum: RetryArithmetic,
}

impl From<Verdict> for ForecastStop {
    fn from(verdict: Verdict) -> Self {
        Self {
            reason: verdict.reason(),
            sentence: verdict.to_string(),
            sum: RetryArithmetic::of(&verdict.arithmetic),
        }
    }
}

/// A forecast of at most `most` retries.
pub fn forecast(context: &ViewContext<'_>, item: ItemId, most: usize) -> Option<Forecast> {
    let job = context.job;
    let active = job.active(item)?;
    let command = job.plan().command(active.command)?;
    if active.repeated().is_some() {
        // Its retries were used up before its handler ran; this is the extra attempt.
        return None;
    }
    if let Some(stop) = expires_on_resume(context, active) {
        return Some(Forecast { retries: Vec::new(), stop: Some(stop) });
    }
    // What failed in an earlier round may have been mended.
    let running = u32::from(matches!(active.activity, Activity::Running(_)));
    let has_failed = active.attempts > running;
    let text = active.error.as_ref().filter(|_| has_failed).map(|error| job.texts.read(error));
    let failure = Failure {
        cause: active.cause.filter(|_| has_failed).unwrap_or(FailureCause::Exit(1)),
        retry_after: None,
        stderr: text.unwrap_or_default(),
        output: "",
    };
    let mut state = RetryState {
        progress: active.progress(),
        draws: job.seed().draws(item.index.into(), command.index, active.round),
        deadline: deadline(context, item),
        pool: job.pool.map(|pool| pool.balance(active.charged)),
    };
    let mut at = start(context, item, active);
    let too_late = comes_too_late(context, active, state.deadline, at);
    if let Some(stop) = too_late.or_else(|| held_too_long(context, item, active, at)) {
        return Some(Forecast { retries: Vec::new(), stop: Some(stop) });
    }
    let breaker = command.breaker.as_ref();
    let shut = breaker.map(|breaker| breaker.settings.recovery_timeout);
    let mut forecast = Forecast::default();
    while forecast.retries.len() < most {
        let next = verdict(&command.retry.policy, &state, &failure, at);
        let due = match next.decision {
            Decision::Retry { at, .. } => at,
            Decision::Hold => at.after(shut.unwrap_or_default()),
            Decision::Stop { .. } => {
                forecast.stop = Some(next.into());
                break;
            }
        };
        state.progress = next.progress(state.progress);
        if let Some(pool) = &mut state.pool {
            pool.consumed = pool.consumed.saturating_add(1);
            pool.item_consumed = pool.item_consumed.saturating_add(1);
        }
        at = due;
        forecast.retries.push(next);
    }
    Some(forecast)
}

fn start(context: &ViewContext<'_>, item: ItemId, active: &ActiveItem) -> Timestamp {
    let now = context.now;
    match active.activity {
        Activity::Waiting(due) => due.max(now),
        Activity::Held => {
            let hold = context.job.step(item.step);
            let hold = hold.and_then(|state| state.held.get(item.index));
            let state = hold.and_then(|hold| context.breakers.get(&hold.breaker));
            state.and_then(BreakerState::until).unwrap_or(now).max(now)
        }
        Activity::Running(_) | Activity::Undecided => now,
    }
}

/// The deadline of an item that has begun. It moves while the job is paused or suspended.
pub(super) fn deadline(context: &ViewContext<'_>, item: ItemId) -> Option<Timestamp> {
    let job = context.job;
    let active = job.active(item)?;
    let began = active.began();
    let began = began.map(|began| began.after(context.standstill(began)));
    job.deadline_for(item.step, active.command, began)
}

/// Set if the deadline passes before the pending attempt can start.
fn comes_too_late(
    context: &ViewContext<'_>,
    active: &ActiveItem,
    deadline: Option<Timestamp>,
    at: Timestamp,
) -> Option<ForecastStop> {
    let is_over = deadline.is_some_and(|deadline| deadline < at);
    if matches!(active.activity, Activity::Running(_)) || !is_over {
        return None;
    }
    Some(without_start(context, active, Reason::Deadline, deadline))
}

/// Set if the hold expires before the breaker can be probed.
fn held_too_long(
    context: &ViewContext<'_>,
    item: ItemId,
    active: &ActiveItem,
    at: Timestamp,
) -> Option<ForecastStop> {
    let hold = HoldView::of(context, item)?;
    let expires = hold.expires_at?.0;
    if expires > at {
        return None;
    }
    let reason = match hold.expires_with {
        Some("deadline") => Reason::Deadline,
        _ => Reason::CircuitOpen,
    };
    Some(without_start(context, active, reason, None))
}

/// The pending attempt never starts.
fn without_start(
    context: &ViewContext<'_>,
    active: &ActiveItem,
    reason: Reason,
    deadline: Option<Timestamp>,
) -> ForecastStop {
    let command = context.job.plan().command(active.command);
    let progress = active.progress();
    ForecastStop {
        reason: Some(reason),
        sentence: match reason {
            Reason::Deadline => "The deadline passes before the next attempt can start".to_owned(),
            reason => reason.sentence().to_owned(),
        },
        sum: RetryArithmetic {
            retry: progress.retries,
            allowed: command.and_then(|command| command.retry.policy.bound().retries()),
            spent_before: progress.spent,
            spent_after: progress.spent,
            deadline,
            ..RetryArithmetic::default()
        },
    }
}

/// Set if the job was interrupted for so long that its resume refuses the pending retry.
fn expires_on_resume(context: &ViewContext<'_>, active: &ActiveItem) -> Option<ForecastStop> {
    let job = context.job;
    let is_interrupted = context.owner.is_none() && job.stage == JobStage::Running;
    if !is_interrupted {
        return None;
    }
    let left = left_at(job, context.seen, context.now);
    let sum = expired(job, active, left, context.now)?;
    Some(ForecastStop { reason: Some(Reason::RetryBudgetExpired), sentence: expired_in_words(&sum), sum })
}
