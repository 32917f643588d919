//! An attempt has ended: a success leads to the next command, a failure to a verdict.

use std::time::Duration;

use undaunted_policy::{
    Decision, Failure, FailureCause, FailureClass, Reason, RetryState, RuleAction, Seed, Timestamp, Verdict,
    verdict,
};

use super::facts::Facts;
use super::fail::{Stop, finish, handler, skip, stop};
use super::hold::hold_by_rule;
use super::words;
use crate::capture;
use crate::event::{AttemptFailed, AttemptId, AttemptSucceeded, ItemEvent, RetryArithmetic, RetryScheduled};
use crate::id::StartId;
use crate::input::AttemptEnd;
use crate::job::ActiveItem;
use crate::mutant::{self, Mutant};
use crate::plan::Successor;
use crate::workflow::{Command, OnInterrupt};

pub(super) fn ended(facts: &mut Facts<'_>, end: &AttemptEnd) {
    let job = facts.job;
    // A repeated report, or one of an unknown start, has no consequence.
    let mut place = job.starts.running.get(&end.start).copied();
    if mutant::is(Mutant::LateReportCounted) {
        place = place.or_else(|| job.starts.running.values().next().copied());
    }
    let found = place.and_then(|item| {
        let active = job.active(item)?;
        let command = job.plan().command(active.command)?;
        Some((active.last_attempt(item), active, command))
    });
    let Some((of, active, command)) = found else {
        return;
    };
    match (end.failure, unusable(command, end)) {
        (None, None) => succeeded(facts, of, active, end),
        (None, Some(why)) => {
            let told = (FailureCause::Unreadable, why.as_str());
            failed(facts, of, active, command, end, told);
        }
        (Some(cause), _) => failed(facts, of, active, command, end, (cause, &end.error)),
    }
}

/// The other side has accepted an attempt; its result is awaited until a deadline.
pub(super) fn accepted(facts: &mut Facts<'_>, start: StartId) {
    let job = facts.job;
    // The result may have arrived first, or the acceptance twice.
    let place = job.starts.running.get(&start).copied();
    let place = place.filter(|_| !job.starts.accepted.contains_key(&start));
    let Some((item, active)) = place.and_then(|item| Some((item, job.active(item)?))) else {
        return;
    };
    let own = facts.now.after(job.plan().completion_timeout(item.step));
    let deadline = job.deadline_of(item.step, active);
    facts.push(ItemEvent::AttemptAccepted {
        of: active.last_attempt(item),
        until: deadline.map_or(own, |deadline| deadline.min(own)),
    });
}

/// Times out one accepted attempt: what follows from it may decide about the next.
pub(super) fn expire(facts: &mut Facts<'_>) {
    let (mut accepted, now) = (facts.job.starts.accepted.iter(), facts.now);
    let Some((start, _)) = accepted.find(|(_, until)| **until <= now) else {
        return;
    };
    ended(
        facts,
        &AttemptEnd {
            start: *start,
            failure: Some(FailureCause::Timeout),
            error: "it was taken on, and no result has come".to_owned(),
            ..AttemptEnd::default()
        },
    );
}

fn unusable(command: &Command, end: &AttemptEnd) -> Option<String> {
    let capture = command.capture.as_ref()?;
    let output = end.output.as_deref().unwrap_or_default();
    capture::read(output, capture.format).err()
}

fn succeeded(facts: &mut Facts<'_>, of: AttemptId, active: &ActiveItem, end: &AttemptEnd) {
    let after = facts.job.plan().after_success(of.command);
    let next = match after {
        Successor::Command(next) => Some(next),
        Successor::Handler(_) | Successor::Item => None,
    };
    let ending = facts.job.ending(of.item());
    facts.push(ItemEvent::AttemptSucceeded(Box::new(AttemptSucceeded {
        of,
        took: end.took,
        next: next.filter(|_| ending.is_none()),
        output: end.output.clone(),
        stdout: end.stdout,
        stderr: end.stderr,
        left: (end.left > 0).then_some(end.left),
    })));
    match (ending, after) {
        // While too many failures stop the job, a handler's result stands unless something would have to
        // start.
        (None, _) | (_, Successor::Item) | (Some(Reason::Tolerance), Successor::Handler(_)) => {
            finish(facts, of, active, after);
        }
        // A stopping job does not begin the rest of an item.
        (Some(reason), _) => skip(facts, of, reason),
    }
}

fn failed(
    facts: &mut Facts<'_>,
    of: AttemptId,
    active: &ActiveItem,
    command: &Command,
    end: &AttemptEnd,
    (cause, error): (FailureCause, &str),
) {
    let failure =
        Failure { cause, retry_after: end.retry_after, stderr: &end.stderr_end, output: &end.stdout_end };
    let verdict = judge(facts, of, active, command, &failure);
    let lines = facts.text(error);
    // A capture only takes the output of a success.
    let wanted = facts.job.plan().wants_output_of_failure(of.command);
    facts.push(ItemEvent::AttemptFailed(Box::new(AttemptFailed {
        of,
        took: end.took,
        cause,
        class: verdict.class,
        error: (!error.is_empty()).then_some(lines),
        rule: verdict.rule.and_then(|rule| u32::try_from(rule).ok()),
        output: end.output.clone().filter(|_| wanted),
        stdout: end.stdout,
        stderr: end.stderr,
    })));
    let last = words::of_failure(cause, error);
    let next = consequence(active, &verdict, &last);
    match (facts.job.ending(of.item()), next) {
        (None, Consequence::Retry { due, delay }) => {
            let sum = RetryArithmetic::of(&verdict.arithmetic);
            let (sum, due, delay) = if end.at_once {
                (sum.without_delay(), facts.now, Duration::ZERO)
            } else {
                (sum, due, delay)
            };
            facts.push(ItemEvent::RetryScheduled(Box::new(RetryScheduled { of, sum, due, delay })));
        }
        (None, Consequence::Hold) => {
            let asked = facts.job.starts.passes.get(&end.start);
            let breaker = asked.map_or("", |(breaker, _)| &**breaker);
            hold_by_rule(facts, of, breaker, RetryArithmetic::of(&verdict.arithmetic));
        }
        (None, Consequence::Stop(why)) => stop(facts, of, active, &why),
        // A job stopped by too many failures lets attempts finish, so this one has failed for good, unless
        // a handler would have to start.
        (Some(Reason::Tolerance), Consequence::Stop(why)) if handler(facts, of, active, &why).is_none() => {
            stop(facts, of, active, &why);
        }
        (Some(reason), _) => skip(facts, of, reason),
    }
}

enum Consequence {
    Retry { due: Timestamp, delay: Duration },
    Hold,
    Stop(Stop),
}

fn consequence(active: &ActiveItem, verdict: &Verdict, last: &str) -> Consequence {
    let stop = |reason, then, error, sum| {
        Consequence::Stop(Stop {
            reason,
            then,
            error,
            sum,
            rule: verdict.rule.and_then(|rule| u32::try_from(rule).ok()),
        })
    };
    let sum = Some(RetryArithmetic::of(&verdict.arithmetic));
    match (verdict.decision, active.repeated()) {
        (Decision::Stop { reason, then: then @ (RuleAction::Skip | RuleAction::DeadLetter) }, _) => {
            stop(reason, then, words::of_stop(verdict, last), sum)
        }
        // Its retries were used up before its handler ran; this was the extra attempt.
        (_, Some(frame)) => {
            let error = words::with_last(frame.reason.sentence(), last);
            stop(frame.reason, RuleAction::Stop, error, None)
        }
        (Decision::Retry { at, wait }, None) => Consequence::Retry { due: at, delay: wait },
        (Decision::Hold, None) => Consequence::Hold,
        (Decision::Stop { reason, then }, None) => stop(reason, then, words::of_stop(verdict, last), sum),
    }
}

fn judge(
    facts: &Facts<'_>,
    of: AttemptId,
    active: &ActiveItem,
    command: &Command,
    failure: &Failure<'_>,
) -> Verdict {
    let job = facts.job;
    let mut state = RetryState {
        usage: active.progress(),
        draws: job.seed().draws(of.index.into(), command.index, active.round),
        deadline: job.deadline_of(of.step, active),
        pool: job.pool.map(|pool| pool.balance(active.charged)),
    };
    mistake(&mut state);
    let mut verdict = verdict(&command.retry.policy, &state, failure, facts.now);
    if failure.cause == FailureCause::Interrupted && command.on_interrupt == OnInterrupt::Stop {
        verdict.class = FailureClass::Permanent;
        verdict.decision = Decision::Stop { reason: Reason::Interrupted, then: RuleAction::Stop };
    }
    verdict
}

/// What a test can have gone wrong with the state that a verdict is asked about.
fn mistake(state: &mut RetryState) {
    if mutant::is(Mutant::ExtraAttempt) {
        state.usage.retries = state.usage.retries.saturating_sub(1);
    }
    if mutant::is(Mutant::BudgetIgnored) {
        state.usage.spent = Duration::ZERO;
    }
    if mutant::is(Mutant::UnseededJitter) {
        state.draws = Seed(mutant::another()).draws(0, 0, 1);
    }
}
