//! What comes next for an item if it keeps failing, and which limit ends it.
//!
//! Asks the same function that decides, from the item's current state, so the forecast is what would be
//! done. Assumes that attempts fail at once and like the last one, and that no other item uses the pool;
//! the caller must say so. A held item continues when its breaker may be probed, and an item that a rule
//! would hold waits as long as the breaker stays open.

use undaunted_policy::{Cause, Decision, Failure, State, Timestamp, Verdict, verdict};

use crate::breaker::{AdmissionControl, BreakerState};
use crate::id::ItemId;
use crate::job::{Doing, Job};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    pub retries: Vec<Verdict>,
    /// The verdict that ends the retries; `None` if `most` was reached first.
    pub stop: Option<Verdict>,
}

pub fn forecast(
    job: &Job,
    breakers: &AdmissionControl,
    item: ItemId,
    now: Timestamp,
    most: usize,
) -> Option<Forecast> {
    let active = job.active(item)?;
    let command = job.plan().command(active.command)?;
    if active.repeated().is_some() {
        // Its retries were used up before its handler ran; this is the extra attempt.
        return None;
    }
    let text = active.error.as_ref().map(|error| job.texts.read(error));
    let failure = Failure {
        cause: active.cause.unwrap_or(Cause::Exit(1)),
        retry_after: None,
        stderr: text.unwrap_or_default(),
        output: "",
    };
    let mut state = State {
        progress: active.progress(),
        draws: job
            .seed()
            .draws(item.index.into(), command.index, active.round),
        deadline: job.deadline_of(item.step, active),
        pool: job.pool.map(|pool| pool.balance(active.charged)),
    };
    let mut at = match active.doing {
        Doing::Waiting(due) => due.max(now),
        Doing::Held => {
            let hold = job.step(item.step);
            let hold = hold.and_then(|state| state.held.get(item.index));
            let state = hold.and_then(|hold| breakers.get(&hold.breaker));
            state.and_then(BreakerState::until).unwrap_or(now).max(now)
        }
        Doing::Running(_) | Doing::Undecided => now,
    };
    let breaker = command.breaker.as_ref();
    let shut = breaker.map(|breaker| breaker.settings.recovery_timeout);
    let mut forecast = Forecast::default();
    while forecast.retries.len() < most {
        let next = verdict(&command.retry.policy, &state, &failure, at);
        let due = match next.decision {
            Decision::Retry { at, .. } => at,
            Decision::Hold => at.after(shut.unwrap_or_default()),
            Decision::Stop { .. } => {
                forecast.stop = Some(next);
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
