//! An attempt, and the arithmetic of the decision that followed.
//!
//! Separate from `event.rs`, because an attempt consists of several events: its start, its end and its retry.

use serde::Serialize;
use undaunted_policy::{FailureCause, Reason, Timestamp};

use super::context::{command_id, step_name};
use super::history::{AttemptFailure, PastAttempt};
use super::time::{DelayView, InstantView, MillisView};
use crate::decide::describe_cause;
use crate::event::{RetryArithmetic, cause_parts, class_word};
use crate::job::Job;

/// Fields that do not apply are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptView {
    pub item: String,
    pub index: u32,
    pub step: Option<String>,
    pub command: Option<String>,
    /// Whether the command belongs to a handler, or follows a success.
    pub handler: bool,
    pub attempt: u32,
    pub round: u32,
    pub breaker: Option<String>,
    pub probe: bool,
    /// The start of the attempt.
    pub at: InstantView,
    pub ended_at: Option<InstantView>,
    pub duration_ms: Option<MillisView>,
    pub outcome: &'static str,
    /// The cause in words, with its number.
    pub failure: Option<String>,
    pub cause: Option<&'static str>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub status: Option<i32>,
    pub class: Option<&'static str>,
    pub rule: Option<u32>,
    pub error: Option<String>,
    pub retry: Option<u32>,
    pub delay_ms: Option<DelayView>,
    pub due_at: Option<InstantView>,
}

/// The name of the item must be known to the job.
pub fn attempt(job: &Job, of: &PastAttempt) -> AttemptView {
    let subject = of.of;
    let failure = of.failure();
    let number = |wanted: &str| {
        let (word, number) = cause_parts(failure?.cause);
        (word == wanted).then_some(number)
    };
    AttemptView {
        item: job.identity(subject.item()).to_owned(),
        index: subject.index,
        step: step_name(job, subject.step),
        command: command_id(job, subject.command),
        handler: !job.plan().is_main(subject.command),
        attempt: subject.attempt.0,
        round: of.round,
        breaker: of.pass.as_ref().map(|pass| job.texts.read(&pass.breaker).to_owned()),
        probe: of.pass.as_ref().is_some_and(|pass| pass.probe),
        at: InstantView(of.began),
        ended_at: of.outcome.as_ref().map(|outcome| InstantView(outcome.at)),
        duration_ms: of.outcome.as_ref().map(|outcome| MillisView(outcome.took)),
        outcome: of.word(),
        failure: failure.map(|failure| describe_cause(failure.cause, failure.limit)),
        cause: failure.map(|failure| cause_parts(failure.cause).0),
        exit_code: number("exit"),
        signal: number("signal"),
        status: number("status"),
        class: failure.map(|failure| class_word(failure.class)),
        rule: failure.and_then(|failure| failure.rule),
        error: failure.map(|failure| failure.error.clone()),
        retry: of.retry.map(|planned| planned.arithmetic.retry),
        delay_ms: of.retry.map(|planned| DelayView(planned.delay)),
        due_at: of.retry.map(|planned| InstantView(planned.due)),
    }
}

impl PastAttempt {
    pub fn word(&self) -> &'static str {
        match &self.outcome {
            None => "running",
            Some(outcome) if outcome.failure.is_some() => "failed",
            Some(_) => "succeeded",
        }
    }

    pub fn failure(&self) -> Option<&AttemptFailure> {
        self.outcome.as_ref()?.failure.as_ref()
    }

    pub fn cause(&self) -> Option<FailureCause> {
        Some(self.failure()?.cause)
    }
}

/// The arithmetic of a retry that was scheduled, held or refused. Numbers that were not computed, because an earlier
/// check refused, are null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionView {
    pub retry: u32,
    pub retries_allowed: Option<u32>,
    pub attempts_allowed: Option<u64>,
    pub computed_ms: Option<DelayView>,
    pub capped_ms: Option<DelayView>,
    pub drawn_ms: Option<DelayView>,
    pub retry_after_ms: Option<DelayView>,
    pub delay_ms: Option<DelayView>,
    pub due_at: Option<InstantView>,
    pub spent_before_ms: DelayView,
    pub spent_after_ms: DelayView,
    /// How late a retry was after unplanned downtime.
    pub overdue_ms: Option<MillisView>,
    pub retry_budget_ms: Option<DelayView>,
    pub retry_budget_expires_at: Option<InstantView>,
    pub deadline: Option<InstantView>,
    pub pool: Option<BalanceView>,
    pub share: Option<BalanceView>,
}

/// The retries that a pool has used before and after the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BalanceView {
    pub before: u32,
    pub after: u32,
    pub allowed: u32,
}

impl DecisionView {
    /// `due` is `None` for a refused retry.
    pub fn of(sum: &RetryArithmetic, due: Option<Timestamp>) -> Self {
        Self::with(sum, due, due.is_some())
    }

    /// A retry that is refused for this reason.
    pub fn refused(sum: &RetryArithmetic, reason: Option<Reason>) -> Self {
        let view = Self::of(sum, None);
        if reason != Some(Reason::RetryBudgetExpired) {
            return view;
        }
        Self {
            overdue_ms: Some(MillisView(sum.overdue())),
            retry_budget_expires_at: sum.expires.map(InstantView),
            ..view
        }
    }

    /// A retry that is made when its breaker releases it.
    pub fn held(sum: &RetryArithmetic) -> Self {
        Self::with(sum, None, true)
    }

    fn with(sum: &RetryArithmetic, due: Option<Timestamp>, charged: bool) -> Self {
        let unit = u32::from(charged);
        let balance = |(used, allowed): (u32, u32)| BalanceView {
            before: used,
            after: used.saturating_add(unit),
            allowed,
        };
        let attempts = |retries: u32| u64::from(retries).saturating_add(1);
        Self {
            retry: sum.retry,
            retries_allowed: sum.allowed,
            attempts_allowed: sum.allowed.map(attempts),
            computed_ms: sum.computed.map(DelayView),
            capped_ms: sum.capped.map(DelayView),
            drawn_ms: sum.drawn.map(DelayView),
            retry_after_ms: sum.retry_after.map(DelayView),
            delay_ms: sum.wait().map(DelayView),
            due_at: due.map(InstantView),
            spent_before_ms: DelayView(sum.spent_before),
            spent_after_ms: DelayView(if charged { sum.spent_after } else { sum.spent_before }),
            overdue_ms: None,
            retry_budget_ms: sum.budget.map(DelayView),
            retry_budget_expires_at: sum.expires.filter(|_| due.is_some()).map(InstantView),
            deadline: sum.deadline.map(InstantView),
            pool: sum.pool.map(balance),
            share: sum.share.map(balance),
        }
    }
}
