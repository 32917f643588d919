//! The history of an item, one entry for each event, and its forecast.

use serde::Serialize;
use serde_json::Value;
use undaunted_policy::{Decision, FailureCause, FailureClass, Reason, RetryConfig, Verdict};

use super::attempt::{AttemptView, DecisionView, attempt};
use super::context::{ViewContext, command_id};
use super::forecast::{Forecast, forecast};
use super::history::{
    AttemptFailure, BreakerHold, HandlerSuccess, History, OvertakingResult, PastAttempt, StopRecord,
};
use super::rule::rule_in_words;
use super::status::ItemStatus;
use super::time::{InstantView, MillisView};
use crate::event::{RetryArithmetic, StoredText};
use crate::id::{CommandId, ItemId};

/// The most retries in a forecast.
const FORECAST: usize = 100;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryView {
    Attempt(Box<AttemptEntry>),
    Stop(Box<StopEntry>),
    Mend(HandlerSuccessEntry),
    Held(Box<HeldEntry>),
    Released(ReleasedEntry),
    Arrived(ArrivedEntry),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptEntry {
    pub attempt: AttemptView,
    /// The most attempts, by the applied terms if they are known.
    pub attempts_allowed: Option<u64>,
    /// Earlier attempts that another system made.
    pub imported: Option<u32>,
    /// The rule that decided, as a workflow would have it.
    pub rule: Option<Value>,
    /// That rule in words, or why no rule decided.
    pub judged: Option<String>,
    pub decision: Option<DecisionView>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StopEntry {
    pub command: String,
    pub attempt: u32,
    pub at: InstantView,
    pub reason: Reason,
    pub error: String,
    pub rule: Option<u32>,
    pub handled: bool,
    /// The refused retry.
    pub decision: Option<DecisionView>,
}

/// An `on_failure` handler has succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandlerSuccessEntry {
    pub command: String,
    pub attempt: u32,
    pub at: InstantView,
    /// Whether the command gets one more attempt; if not, the item continues without it.
    pub again: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldEntry {
    pub command: String,
    pub attempt: u32,
    pub at: InstantView,
    pub breaker: String,
    pub why: &'static str,
    pub until: Option<InstantView>,
    pub expires_at: Option<InstantView>,
    pub attempts_left: Option<u64>,
    pub decision: Option<DecisionView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReleasedEntry {
    pub command: String,
    pub attempt: u32,
    pub at: InstantView,
    pub breaker: String,
    pub held_ms: MillisView,
}

/// The forecast, if every further attempt fails at once and like the last one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextView {
    /// A retry without `due_at` starts when its breaker releases it.
    pub retries: Vec<DecisionView>,
    pub stops: StopsView,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StopsView {
    /// Null without a limit, or if a rule ends the retries.
    pub reason: Option<Reason>,
    pub after_retries: u32,
    pub sentence: Option<String>,
    pub decision: Option<DecisionView>,
}

/// A result that arrived by webhook while the item waited for a retry, which was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrivedEntry {
    pub command: String,
    /// The last attempt made.
    pub attempt: u32,
    pub at: InstantView,
    /// Null if it was a success.
    pub error: Option<String>,
}

pub(super) struct EntryBuilder<'a> {
    pub(super) context: &'a ViewContext<'a>,
    pub(super) item: ItemId,
    pub(super) history: &'a History,
}

impl EntryBuilder<'_> {
    pub(super) fn views(&self, only: Option<CommandId>) -> Vec<EntryView> {
        let History { attempts, stops, mends, holds, arrived, .. } = self.history;
        let mut entries = Vec::new();
        let mut put = |of: CommandId, view: EntryView| {
            if only.is_none_or(|only| only == of) {
                entries.push(view);
            }
        };
        if let Some(arrived) = arrived {
            put(arrived.of.command, self.arrived(arrived));
        }
        for stop in stops {
            put(stop.stopped.of.command, self.stop(stop));
        }
        for mend in mends {
            put(mend.of.command, self.mend(*mend));
        }
        for hold in holds {
            put(hold.held.of.command, self.held(hold));
        }
        for hold in holds {
            if let Some(view) = self.released(hold) {
                put(hold.held.of.command, view);
            }
        }
        for attempt in attempts {
            put(attempt.of.command, self.attempt(attempt));
        }
        // The sort is stable: the entries after the end of an attempt come before attempts that began at the same
        // instant, unless that attempt took no time.
        entries.sort_by_key(|entry| (entry.at(), !entry.is_instant()));
        entries
    }

    fn command(&self, command: CommandId) -> String {
        command_id(self.context.job, command).unwrap_or_default()
    }

    fn text(&self, text: &StoredText) -> String {
        self.context.job.texts.read(text).to_owned()
    }

    fn attempt(&self, of: &PastAttempt) -> EntryView {
        let failure = of.failure();
        EntryView::Attempt(Box::new(AttemptEntry {
            attempt: attempt(self.context.job, of),
            attempts_allowed: self.bound(of),
            imported: self.imported(of),
            rule: failure.and_then(|failure| failure.row.clone()),
            judged: failure.map(|failure| self.judged(of, failure)),
            decision: of.retry.map(|planned| DecisionView::of(&planned.arithmetic, Some(planned.due))),
        }))
    }

    fn stop(&self, StopRecord { at, stopped }: &StopRecord) -> EntryView {
        let sum = stopped.arithmetic.as_ref();
        EntryView::Stop(Box::new(StopEntry {
            command: self.command(stopped.of.command),
            attempt: stopped.of.attempt.0,
            at: InstantView(*at),
            reason: stopped.reason,
            error: self.text(&stopped.error),
            rule: stopped.rule,
            handled: stopped.handler.is_some(),
            decision: sum.map(|sum| DecisionView::refused(sum, Some(stopped.reason))),
        }))
    }

    fn mend(&self, of: HandlerSuccess) -> EntryView {
        EntryView::Mend(HandlerSuccessEntry {
            command: self.command(of.of.command),
            attempt: of.of.attempt.0,
            at: InstantView(of.at),
            again: of.again,
        })
    }

    fn held(&self, BreakerHold { at, held, .. }: &BreakerHold) -> EntryView {
        EntryView::Held(Box::new(HeldEntry {
            command: self.command(held.of.command),
            attempt: held.of.attempt.0,
            at: InstantView(*at),
            breaker: self.text(&held.breaker),
            why: if held.arithmetic.is_some() { "rule" } else { "open" },
            until: held.until.map(InstantView),
            expires_at: held.expires.map(InstantView),
            attempts_left: held.left,
            decision: held.arithmetic.as_ref().map(DecisionView::held),
        }))
    }

    fn released(&self, hold: &BreakerHold) -> Option<EntryView> {
        let (at, time) = hold.released?;
        Some(EntryView::Released(ReleasedEntry {
            command: self.command(hold.held.of.command),
            attempt: hold.held.of.attempt.0,
            at: InstantView(at),
            breaker: self.text(&hold.held.breaker),
            held_ms: MillisView(time),
        }))
    }

    fn arrived(&self, arrived: &OvertakingResult) -> EntryView {
        EntryView::Arrived(ArrivedEntry {
            command: self.command(arrived.of.command),
            attempt: arrived.of.attempt.0,
            at: InstantView(arrived.at),
            error: arrived.error.clone(),
        })
    }

    /// Earlier attempts that are not in the journal, because another system made them.
    fn imported(&self, attempt: &PastAttempt) -> Option<u32> {
        let (of, round) = (attempt.of, attempt.round);
        let same = |it: &&PastAttempt| it.of.command == of.command && it.round == round;
        let first = self.history.attempts.iter().find(same)?;
        let before = of.attempt.0.saturating_sub(1);
        (first.of == of && before > 0).then_some(before)
    }

    fn bound(&self, attempt: &PastAttempt) -> Option<u64> {
        let of = attempt.of;
        let stops = self.history.stops.iter();
        let mut sums = stops.filter(|stop| stop.stopped.of == of).map(|stop| stop.stopped.arithmetic);
        let applied = attempt.retry.map(|planned| planned.arithmetic);
        let bound = if let Some(sum) = applied.or_else(|| sums.next().flatten()) {
            u64::from(sum.allowed?).saturating_add(1)
        } else {
            let command = self.context.job.plan().command(of.command)?;
            let limits = command.retry.policy.terms().limits();
            limits.attempts().executions()?
        };
        // A handler that repeats its command allows more.
        (u64::from(of.attempt.0) <= bound).then_some(bound)
    }

    fn judged(&self, attempt: &PastAttempt, failure: &AttemptFailure) -> String {
        let job = self.context.job;
        if let Some(row) = failure.rule {
            let command = job.plan().command(attempt.of.command);
            let usual = command.map(|command| RetryConfig::from(&command.retry.policy));
            let usual = usual.and_then(|config| serde_json::to_value(config).ok());
            let written = failure.row.as_ref();
            let written = written.map(|it| rule_in_words(it, &usual.unwrap_or_default()));
            let written = written.unwrap_or_default();
            return format!("{} of the table: {written}", row.saturating_add(1));
        }
        if let Some(why) = self.given_up(attempt, failure) {
            return why.to_owned();
        }
        let (class, usual) = (failure.class, failure.cause.class());
        let text = match class {
            FailureClass::Transient => "none matched; the failure is transient",
            FailureClass::Throttled => "none matched; the server said when to retry",
            FailureClass::Permanent if usual == FailureClass::Permanent => {
                "none matched; a permanent failure is not retried"
            }
            FailureClass::Permanent => "none matched; `retry_on` does not list it",
        };
        text.to_owned()
    }

    /// Why no decision followed a failure: the item was not to be retried any more.
    fn given_up(&self, attempt: &PastAttempt, failure: &AttemptFailure) -> Option<&'static str> {
        let end = attempt.outcome.as_ref().map(|outcome| outcome.at);
        let (of, history) = (attempt.of, self.history);
        let mut stops = history.stops.iter();
        let mut holds = history.holds.iter();
        let is_decided = attempt.retry.is_some()
            || stops.any(|stop| stop.stopped.of == of && Some(stop.at) == end)
            || holds.any(|hold| hold.held.of == of && Some(hold.at) == end);
        if is_decided {
            return None;
        }
        match ItemStatus::of(self.context.job, self.item) {
            ItemStatus::Missing(_) | ItemStatus::Skipped(_) if failure.cause == FailureCause::Interrupted => {
                Some("not applied; the attempt was ended because its item was cancelled or no longer needed")
            }
            ItemStatus::Missing(_) => Some("not applied; the step was complete without this item"),
            ItemStatus::Skipped(_) => Some("not applied; the item was already skipped"),
            ItemStatus::Pending
            | ItemStatus::Running
            | ItemStatus::Waiting
            | ItemStatus::Held
            | ItemStatus::Succeeded
            | ItemStatus::Dead(_) => None,
        }
    }

    /// The forecast, if the item is at the requested command.
    pub(super) fn next(&self, only: Option<CommandId>) -> Option<NextView> {
        let job = self.context.job;
        let at = job.active(self.item)?.command;
        let is_over = job.stage.has_ended() || job.end_reason(self.item).is_some();
        if is_over || only.is_some_and(|only| only != at) {
            return None;
        }
        let Forecast { retries, stop } = forecast(self.context, self.item, FORECAST)?;
        let decision = |verdict: &Verdict| {
            let sum = RetryArithmetic::of(&verdict.arithmetic);
            match verdict.decision {
                Decision::Retry { at, .. } => DecisionView::of(&sum, Some(at)),
                Decision::Hold => DecisionView::held(&sum.without_delay()),
                Decision::Stop { .. } => DecisionView::of(&sum, None),
            }
        };
        Some(NextView {
            stops: StopsView {
                reason: stop.as_ref().and_then(|stop| stop.reason),
                after_retries: u32::try_from(retries.len()).unwrap_or(u32::MAX),
                decision: stop.as_ref().map(|it| DecisionView::refused(&it.sum, it.reason)),
                sentence: stop.map(|stop| stop.sentence),
            },
            retries: retries.iter().map(decision).collect(),
        })
    }
}

impl EntryView {
    fn is_instant(&self) -> bool {
        match self {
            Self::Attempt(entry) => entry.attempt.ended_at == Some(entry.attempt.at),
            Self::Stop(_) | Self::Mend(_) | Self::Held(_) | Self::Released(_) | Self::Arrived(_) => false,
        }
    }

    fn at(&self) -> InstantView {
        match self {
            Self::Attempt(entry) => entry.attempt.at,
            Self::Stop(entry) => entry.at,
            Self::Mend(entry) => entry.at,
            Self::Held(entry) => entry.at,
            Self::Released(entry) => entry.at,
            Self::Arrived(entry) => entry.at,
        }
    }
}
