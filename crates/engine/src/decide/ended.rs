//! Answers the end of an attempt: a success leads to the next command, a failure to a verdict.
//!
//! `undaunted_policy::verdict` alone computes delays and limits; this file turns its verdict into events.

use std::time::Duration;

use undaunted_policy::{
    Decision, Failure, FailureCause, FailureClass, Reason, RetryState, RuleAction, Seed, Timestamp, Verdict,
    verdict,
};

use super::draft::EventDraft;
use super::fail::{Stop, cut_off, finish, handler, skip, stop};
use super::hold::hold_by_rule;
use super::words;
use crate::capture;
use crate::event::{
    AttemptFailed, AttemptId, AttemptSucceeded, ItemEvent, JobEvent, ResultArrived, RetryArithmetic,
    RetryScheduled, TimeLimit, TimeLimitKind,
};
use crate::id::{ItemId, StartId};
use crate::input::AttemptEnd;
use crate::job::{ActiveItem, Activity, JobStage};
use crate::mutant::{self, Mutant};
use crate::plan::Successor;
use crate::workflow::{Command, OnInterrupt};

pub(super) fn ended(draft: &mut EventDraft<'_>, end: &AttemptEnd) {
    let job = draft.job;
    // A repeated report, or one about an unknown start, changes nothing.
    let mut running = job.starts.running.get(&end.start).copied();
    if mutant::is(Mutant::LateReportCounted) {
        running = running.or_else(|| job.starts.running.values().next().copied());
    }
    let found = running.and_then(|item| {
        let active = job.active(item)?;
        let command = job.plan().command(active.command)?;
        Some((active.last_attempt(item), active, command))
    });
    let Some((of, active, command)) = found else { return };
    let limit = exceeded_limit(draft, end);
    match (end.failure, capture_error(command, end)) {
        (None, None) => succeeded(draft, of, active, end),
        (None, Some(why)) => {
            let failed_end = FailedEnd { end, cause: FailureCause::Unreadable, limit, error: &why };
            failed(draft, of, active, command, &failed_end);
        }
        (Some(cause), _) => {
            // The job's deadline has ended it, whether the keeper noticed first or the job.
            let cause = limit.map_or(cause, |_| FailureCause::Timeout);
            failed(draft, of, active, command, &FailedEnd { end, cause, limit, error: &end.error });
        }
    }
}

/// A failed attempt, with the cause and the text that decide.
struct FailedEnd<'e> {
    end: &'e AttemptEnd,
    cause: FailureCause,
    limit: Option<TimeLimit>,
    error: &'e str,
}

/// The time limit that ended an attempt.
fn exceeded_limit(draft: &EventDraft<'_>, end: &AttemptEnd) -> Option<TimeLimit> {
    let job = draft.job;
    let cause = end.failure?;
    let own = || {
        let (until, limit) = job.starts.limits.get(&end.start)?;
        // A connection may time out by itself, before any limit of ours.
        (cause == FailureCause::Timeout && *until <= draft.now).then_some(*limit)
    };
    job.deadline_that_ended(cause).or_else(own)
}

/// Records that the target has accepted an attempt, whose result is awaited until a deadline.
pub(super) fn accepted(draft: &mut EventDraft<'_>, start: StartId) {
    let job = draft.job;
    // The result may have arrived first, or the acceptance twice.
    let running = job.starts.running.get(&start).copied();
    let running = running.filter(|_| !job.starts.accepted.contains_key(&start));
    let Some((item, active)) = running.and_then(|item| Some((item, job.active(item)?))) else { return };
    let (until, _) = job.result_limit(item.step, active, draft.now);
    draft.push(ItemEvent::AttemptAccepted { of: active.last_attempt(item), until });
}

/// Times out one accepted attempt. Only one, because what follows from it may decide about the next.
pub(super) fn expire(draft: &mut EventDraft<'_>) {
    let (mut accepted, now) = (draft.job.starts.accepted.iter(), draft.now);
    let Some((start, _)) = accepted.find(|(_, until)| **until <= now) else { return };
    ended(
        draft,
        &AttemptEnd {
            start: *start,
            failure: Some(FailureCause::Timeout),
            error: "the target accepted the request, but sent no result in time".to_owned(),
            ..AttemptEnd::default()
        },
    );
}

/// Answers a result that arrives while its item waits for a retry: it counts, and no further attempt is made.
pub(super) fn result_arrived(draft: &mut EventDraft<'_>, item: ItemId, result: &Result<String, String>) {
    let job = draft.job;
    let waits = |active: &&ActiveItem| match active.activity {
        Activity::Waiting(_) | Activity::Held => active.attempts > 0,
        Activity::Running(_) | Activity::Undecided => false,
    };
    let Some(active) = job.active(item).filter(waits) else { return };
    let of = active.last_attempt(item);
    let error = result.as_ref().err().map(|error| draft.text(error));
    let output = result.as_ref().ok().cloned();
    draft.push(ItemEvent::ResultArrived(Box::new(ResultArrived { of, output, error })));
    match result {
        Ok(_) => finish(draft, of, active, Successor::Item),
        Err(error) => {
            let error = words::of_failure(FailureCause::Refused, None, error);
            stop(draft, of, active, &Stop::because(Reason::Permanent, error));
        }
    }
}

fn capture_error(command: &Command, end: &AttemptEnd) -> Option<String> {
    let capture = command.capture.as_ref()?;
    let output = end.output.as_deref().unwrap_or_default();
    capture::read(output, capture.format).err()
}

fn succeeded(draft: &mut EventDraft<'_>, of: AttemptId, active: &ActiveItem, end: &AttemptEnd) {
    let after = draft.job.plan().after_success(of.command);
    let next = match after {
        Successor::Command(next) => Some(next),
        Successor::Handler(_) | Successor::Item => None,
    };
    // An item with commands left reaches the next one, so that a redrive after the deadline begins there.
    let ending = draft.job.end_reason(of.item()).filter(|_| !draft.job.stops_at_deadline());
    draft.push(ItemEvent::AttemptSucceeded(Box::new(AttemptSucceeded {
        of,
        took: end.took,
        next: next.filter(|_| ending.is_none()),
        output: end.output.clone(),
        stdout: end.stdout,
        stderr: end.stderr,
        left: (end.left > 0).then_some(end.left),
    })));
    match (ending, after) {
        // When the tolerance stops the job, the result of a handler stands unless a command would have to
        // start.
        (None, _) | (_, Successor::Item) | (Some(Reason::Tolerance), Successor::Handler(_)) => {
            finish(draft, of, active, after);
        }
        // A stopping job does not start the remaining commands of an item.
        (Some(reason), _) => skip(draft, of, reason),
    }
}

fn failed(
    draft: &mut EventDraft<'_>,
    of: AttemptId,
    active: &ActiveItem,
    command: &Command,
    &FailedEnd { end, cause, limit, error }: &FailedEnd<'_>,
) {
    let job = draft.job;
    let failure =
        Failure { cause, retry_after: end.retry_after, stderr: &end.stderr_end, output: &end.stdout_end };
    let verdict = judge(draft, of, active, command, &failure);
    let is_cut_off = is_cut_off(draft, limit);
    let lines = draft.text(error);
    // A capture only takes the output of a success.
    let wanted = draft.job.plan().wants_output_of_failure(of.command);
    draft.push(ItemEvent::AttemptFailed(Box::new(AttemptFailed {
        of,
        took: end.took,
        cause,
        class: verdict.class,
        error: (!error.is_empty()).then_some(lines),
        rule: verdict.rule.and_then(|rule| u32::try_from(rule).ok()).filter(|_| !is_cut_off),
        output: end.output.clone().filter(|_| wanted),
        stdout: end.stdout,
        stderr: end.stderr,
        limit,
    })));
    let last = words::of_failure(cause, limit, error);
    if is_cut_off {
        return cut_off(draft, of, active, &last);
    }
    let next = consequence(active, &verdict, &last);
    match (draft.job.end_reason(of.item()), next) {
        (None, Consequence::Retry { due, delay }) => {
            let sum = RetryArithmetic::of(&verdict.arithmetic);
            let (sum, due, delay) = if end.at_once {
                (sum.without_delay(), draft.now, Duration::ZERO)
            } else {
                (sum, due, delay)
            };
            draft.push(ItemEvent::RetryScheduled(Box::new(RetryScheduled {
                of,
                arithmetic: sum,
                due,
                delay,
            })));
        }
        (None, Consequence::Hold) => {
            let breaker = draft.job.starts.passes.get(&end.start).map_or("", |(breaker, _)| &**breaker);
            hold_by_rule(draft, of, breaker, RetryArithmetic::of(&verdict.arithmetic));
        }
        (None, Consequence::Stop(why)) => stop(draft, of, active, &why),
        // A job that the tolerance stops lets attempts finish, so this one has failed for good, unless a
        // handler would have to start. So has one that failed by itself when the deadline passed.
        (Some(reason), Consequence::Stop(why))
            if (reason == Reason::Tolerance
                || (job.stops_at_deadline() && why.reason != Reason::Deadline))
                && handler(draft, of, active, &why).is_none() =>
        {
            stop(draft, of, active, &why);
        }
        (Some(_), _) if job.stops_at_deadline() => {
            cut_off(draft, of, active, &words::with_last(Reason::Deadline.sentence(), &last));
        }
        (Some(reason), _) => skip(draft, of, reason),
    }
}

/// Whether the deadline of the job ended an attempt. The job stops then.
fn is_cut_off(draft: &mut EventDraft<'_>, limit: Option<TimeLimit>) -> bool {
    let by_deadline = limit.is_some_and(|limit| limit.kind == TimeLimitKind::Deadline);
    if by_deadline && draft.job.stage == JobStage::Running {
        // No `Woke` input has reported the deadline yet.
        draft.push(JobEvent::Stopping { reason: Reason::Deadline });
        return true;
    }
    by_deadline && draft.job.stops_at_deadline()
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
        // The retries were used up before the handler ran; this was the extra attempt.
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
    draft: &EventDraft<'_>,
    of: AttemptId,
    active: &ActiveItem,
    command: &Command,
    failure: &Failure<'_>,
) -> Verdict {
    let job = draft.job;
    let mut state = RetryState {
        progress: active.progress(),
        draws: job.seed().draws(of.index.into(), command.index, active.round),
        deadline: job.deadline_of(of.step, active),
        pool: job.pool.map(|pool| pool.balance(active.charged)),
    };
    apply_mutants(&mut state);
    let mut verdict = verdict(&command.retry.policy, &state, failure, draft.now);
    if failure.cause == FailureCause::Interrupted && command.on_interrupt == OnInterrupt::Stop {
        verdict.class = FailureClass::Permanent;
        verdict.decision = Decision::Stop { reason: Reason::Interrupted, then: RuleAction::Stop };
    }
    verdict
}

/// Spoils the input of a verdict as the chosen [`Mutant`] says. Does nothing without the feature `mutants`.
fn apply_mutants(state: &mut RetryState) {
    if mutant::is(Mutant::ExtraAttempt) {
        state.progress.retries = state.progress.retries.saturating_sub(1);
    }
    if mutant::is(Mutant::BudgetIgnored) {
        state.progress.spent = Duration::ZERO;
    }
    if mutant::is(Mutant::UnseededJitter) {
        state.draws = Seed(mutant::another()).draws(0, 0, 1);
    }
}
