//! A work item of a flow in the HTTP API.
//!
//! A redriven item looks like a new one. An item that was skipped because another one failed, and that a redrive of
//! the other one restarts, shows its earlier end until it has a newer outcome.

use serde::Serialize;
use serde_json::{Map, Value, json};
use undaunted_policy::{FailureCause, Reason, Timestamp};

use super::history::{AttemptFailure, AttemptOutcome, History, ItemEnd, PastAttempt};
use super::projection::Projection;
use super::time::rfc3339;
use crate::decide::describe_cause;
use crate::id::ItemId;
use crate::job::{Activity, ItemState, Job, SettledItem, StepState};
use crate::task::{as_uuid, receipt_token};

/// Adds a field that is left out without a value.
pub(super) fn put_some(view: &mut Value, name: &str, value: Option<impl Serialize>) {
    if let (Some(view), Some(value)) = (view.as_object_mut(), value) {
        let _ = view.insert(name.to_owned(), json!(value));
    }
}

pub(super) fn work_item(
    state: &StepState,
    index: u32,
    found: ItemState<'_>,
    history: Option<&History>,
) -> Value {
    let outputs = matches!(found, ItemState::Settled(SettledItem::Succeeded)).then(|| {
        let outputs = state.outputs.get(&index);
        object(outputs.map_or("{}", String::as_str))
    });
    let mut view = json!({
        "completed_at": history.and_then(History::ended_at).map(rfc3339),
        "inputs": object(state.items.input(index)),
        "next_retry_at": history.and_then(History::due).map(rfc3339),
        "retry_count": history.map(History::retries).unwrap_or_default(),
        "started_at": history.and_then(History::started_at).map(rfc3339),
        "status": status(found),
    });
    put_some(&mut view, "error", history.and_then(History::error));
    put_some(&mut view, "outputs", outputs);
    view
}

fn status(found: ItemState<'_>) -> &'static str {
    match found {
        ItemState::Pending => "pending",
        ItemState::Active(active) => match active.activity {
            Activity::Running(_) => "active",
            Activity::Waiting(_) | Activity::Held => "pending",
            Activity::Undecided => "not_completed",
        },
        ItemState::Settled(SettledItem::Succeeded) => "succeeded",
        // A dropped dead letter has failed too.
        ItemState::Settled(SettledItem::Dead(_) | SettledItem::Skipped(Reason::NotSelected)) => "failed",
        ItemState::Settled(SettledItem::Skipped(_) | SettledItem::Missing(_)) => "not_completed",
    }
}

/// The inputs or outputs of an item; `{}` if the text is not JSON.
pub(super) fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::Object(Map::new()))
}

/// The receipt token of an item in its current round.
pub(super) fn token(job: &Job, projection: &Projection, item: ItemId) -> String {
    let again = job.step(item.step).map_or(0, |state| state.again);
    let round = match job.item(item) {
        Some(ItemState::Active(active)) => active.round,
        Some(ItemState::Pending) => again.saturating_add(1),
        Some(ItemState::Settled(_)) | None => {
            let dead = job.dead.get(&item).map(|dead| dead.round);
            let started = projection.rounds.get(&item).copied();
            dead.or(started).unwrap_or(again.saturating_add(1))
        }
    };
    let command = job.plan().first(item.step).unwrap_or_default();
    as_uuid(&receipt_token(job, item, command, round))
}

impl History {
    /// The attempts of the current round, the last one first.
    fn latest(&self) -> impl Iterator<Item = &PastAttempt> {
        let attempts = self.attempts.iter().rev();
        attempts.take_while(|attempt| attempt.round == self.round)
    }

    /// A dropped dead letter keeps the end it had.
    fn shown_end(&self) -> Option<&ItemEnd> {
        self.letter.as_ref().or(self.end.as_ref())
    }

    /// The attempts since the item has ended, or all attempts of an item that has not.
    fn since_end(&self) -> impl Iterator<Item = &PastAttempt> {
        let before = self.shown_end().map_or(0, |end| end.attempts);
        let since = self.attempts.len().saturating_sub(before);
        self.latest().take(since)
    }

    fn outcome_since_end(&self) -> Option<&AttemptOutcome> {
        self.since_end().find_map(|attempt| attempt.outcome.as_ref())
    }

    fn started_at(&self) -> Option<Timestamp> {
        Some(self.latest().next()?.began)
    }

    fn ended_at(&self) -> Option<Timestamp> {
        // A late success that counts does not end the item.
        let late = self.outcome_since_end().filter(|outcome| outcome.failure.is_none());
        let end = || self.shown_end().map(|end| end.at);
        late.map(|outcome| outcome.at).or_else(end)
    }

    fn retries(&self) -> u32 {
        let last = self.latest().find_map(|attempt| attempt.retry);
        last.map_or(0, |retry| retry.arithmetic.retry)
    }

    /// When the next attempt is due.
    fn due(&self) -> Option<Timestamp> {
        Some(self.since_end().next()?.retry?.due)
    }

    pub(super) fn error(&self) -> Option<String> {
        if let Some(outcome) = self.outcome_since_end() {
            return outcome.failure.as_ref().map(AttemptFailure::in_words);
        }
        let end = self.shown_end()?;
        let reason = end.reason?;
        if !end.dead {
            return Some(reason.sentence().to_owned());
        }
        if let Some(error) = self.arrived.as_ref().and_then(|arrived| arrived.error.clone()) {
            return Some(error);
        }
        // The error of the last attempt, unless a limit is the reason.
        let last = self.latest().find_map(|attempt| attempt.outcome.as_ref());
        let last = last.filter(|_| matches!(reason, Reason::Permanent | Reason::Attempts));
        let failure = last.and_then(|outcome| outcome.failure.as_ref());
        let failure = failure.map(AttemptFailure::in_words);
        Some(failure.unwrap_or_else(|| end.error.clone().unwrap_or_default()))
    }
}

impl AttemptFailure {
    fn in_words(&self) -> String {
        let cause = describe_cause(self.cause, self.limit);
        match self.error.as_str() {
            "" => cause,
            // The error message of a service is shown verbatim.
            error if self.cause == FailureCause::Refused => error.to_owned(),
            error => format!("{cause}: {error}"),
        }
    }
}
