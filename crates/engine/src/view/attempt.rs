//! An attempt, and the numbers behind what followed from it, as JSON.
//!
//! Apart from `event.rs` because an attempt consists of several events: its start, its end and its retry.

use std::time::Duration;

use serde::Serialize;
use undaunted_policy::{Cause, Timestamp};

use super::event::rfc3339;
use super::history::{AttemptFailure, PastAttempt};
use crate::event::{Sum, cause_parts, class_word};
use crate::job::Job;

/// What does not apply is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptView {
    item: String,
    index: u32,
    step: Option<String>,
    command: Option<String>,
    /// Whether the command belongs to a handler, or follows a success.
    handler: bool,
    attempt: u32,
    round: u32,
    breaker: Option<String>,
    probe: bool,
    at: String,
    duration_ms: Option<u64>,
    outcome: &'static str,
    cause: Option<&'static str>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    status: Option<i32>,
    class: Option<&'static str>,
    rule: Option<u32>,
    error: Option<String>,
    retry: Option<u32>,
    delay_ms: Option<u64>,
    due_at: Option<String>,
}

pub fn attempt(job: &Job, of: &PastAttempt) -> AttemptView {
    let subject = of.of;
    let (plan, state) = (job.plan(), job.step(subject.step));
    let outcome = of.outcome.as_ref();
    let failure = outcome.and_then(|outcome| outcome.failure.as_ref());
    let number = |wanted: &str| {
        let (word, number) = cause_parts(failure?.cause);
        (word == wanted).then_some(number)
    };
    AttemptView {
        item: state.map_or_else(String::new, |state| {
            state.items.identity(subject.index).to_owned()
        }),
        index: subject.index,
        step: plan.step(subject.step).map(|step| step.name.clone()),
        command: plan.command(subject.command).map(|it| it.id.clone()),
        handler: !plan.is_main(subject.command),
        attempt: subject.attempt.0,
        round: of.round,
        breaker: of.pass.as_ref().map(|pass| pass.breaker.clone()),
        probe: of.pass.as_ref().is_some_and(|pass| pass.probe),
        at: rfc3339(of.began),
        duration_ms: outcome.map(|outcome| millis(outcome.took)),
        outcome: of.word(),
        cause: failure.map(|failure| cause_parts(failure.cause).0),
        exit_code: number("exit"),
        signal: number("signal"),
        status: number("status"),
        class: failure.map(|failure| class_word(failure.class)),
        rule: failure.and_then(|failure| failure.rule),
        error: failure.map(|failure| failure.error.clone()),
        retry: of.retry.map(|planned| planned.sum.retry),
        delay_ms: of.retry.map(|planned| millis(planned.delay)),
        due_at: of.retry.map(|planned| rfc3339(planned.due)),
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

    pub fn cause(&self) -> Option<Cause> {
        Some(self.failure()?.cause)
    }
}

/// What was not computed, because an earlier check refused, is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SumView {
    retry: u32,
    retries_allowed: Option<u32>,
    attempts_allowed: Option<u64>,
    computed_ms: Option<u64>,
    capped_ms: Option<u64>,
    drawn_ms: Option<u64>,
    retry_after_ms: Option<u64>,
    delay_ms: Option<u64>,
    due_at: Option<String>,
    spent_before_ms: u64,
    spent_after_ms: u64,
    retry_budget_ms: Option<u64>,
    retry_budget_expires_at: Option<String>,
    deadline: Option<String>,
    pool: Option<BalanceView>,
    share: Option<BalanceView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct BalanceView {
    before: u32,
    after: u32,
    allowed: u32,
}

impl SumView {
    /// `due` is `None` for a refused retry.
    pub fn of(sum: &Sum, due: Option<Timestamp>) -> Self {
        Self::with(sum, due, due.is_some())
    }

    /// A retry that is made when its breaker releases it.
    pub fn held(sum: &Sum) -> Self {
        Self::with(sum, None, true)
    }

    fn with(sum: &Sum, due: Option<Timestamp>, charged: bool) -> Self {
        let unit = u32::from(charged);
        let balance = |(used, allowed): (u32, u32)| BalanceView {
            before: used,
            after: used.saturating_add(unit),
            allowed,
        };
        Self {
            retry: sum.retry,
            retries_allowed: sum.allowed,
            attempts_allowed: sum
                .allowed
                .map(|allowed| u64::from(allowed).saturating_add(1)),
            computed_ms: sum.computed.map(millis),
            capped_ms: sum.capped.map(millis),
            drawn_ms: sum.drawn.map(millis),
            retry_after_ms: sum.retry_after.map(millis),
            delay_ms: sum.wait().map(millis),
            due_at: due.map(rfc3339),
            spent_before_ms: millis(sum.spent_before),
            spent_after_ms: match due {
                Some(_) => millis(sum.spent_after),
                None => millis(sum.spent_before),
            },
            retry_budget_ms: sum.budget.map(millis),
            retry_budget_expires_at: sum.expires.filter(|_| due.is_some()).map(rfc3339),
            deadline: sum.deadline.map(rfc3339),
            pool: sum.pool.map(balance),
            share: sum.share.map(balance),
        }
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
