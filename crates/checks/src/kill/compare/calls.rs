//! Compares requests and async results in the journal with what the step server saw.
//!
//! A request that was under way in a crash may have been sent or not, and may be seen late. All others are
//! seen once, while their attempt runs.

use std::collections::BTreeMap;

use super::attempts::{AttemptTrace, TracedOutcome};
use super::{KillEvidence, SLACK, ServedCall};
use crate::kill::findings::KillFindings;
use crate::kill::journal::{CommandKey, JournalEvent};
use crate::kill::plan::CommandKind;
use crate::kill::step_server::PostedResult;

pub(super) fn check(case: &KillEvidence<'_>, attempts: &[AttemptTrace], findings: &mut KillFindings) {
    check_results(case, findings);
    let mut calls: BTreeMap<CommandKey, Vec<&ServedCall>> = BTreeMap::new();
    for call in case.calls {
        let key = (call.correlation.clone(), call.command.clone());
        calls.entry(key).or_default().push(call);
        findings.duplicated_unless(
            !call.overlaps,
            format_args!("a request while another of its command was under way: {call:?}"),
        );
    }
    let mut made: BTreeMap<&CommandKey, Vec<&AttemptTrace>> = BTreeMap::new();
    for attempt in attempts {
        let planned = case.plan.commands.get(&attempt.key.1);
        if planned.is_some_and(|it| [CommandKind::Call, CommandKind::Later].contains(&it.kind)) {
            made.entry(&attempt.key).or_default().push(attempt);
        }
    }
    for (key, calls) in &calls {
        let made = made.get(key).map(Vec::as_slice).unwrap_or_default();
        let (requests, attempts) = (calls.len(), made.len());
        let what = format_args!("{requests} requests of {}, and {attempts} attempts on record", key.1);
        findings.duplicated_unless(requests <= attempts, what);
        if is_async(case, key) {
            // The result of a call from before a crash may come while the next call is being sent.
            continue;
        }
        for call in calls {
            within(call, made, findings);
        }
    }
    for (key, made) in &made {
        if is_async(case, key) {
            continue;
        }
        let calls = calls.get(*key).map(Vec::as_slice).unwrap_or_default();
        for attempt in made {
            answered(case, attempt, calls, findings);
        }
    }
}

fn is_async(case: &KillEvidence<'_>, key: &CommandKey) -> bool {
    let planned = case.plan.commands.get(&key.1);
    planned.is_some_and(|it| it.kind == CommandKind::Later)
}

/// A request belongs to an attempt that runs or was interrupted.
fn within(call: &ServedCall, made: &[&AttemptTrace], findings: &mut KillFindings) {
    let before = made.iter().rev().find(|it| it.at <= call.begin);
    let Some(attempt) = before else {
        return findings.duplicated(format_args!("a request before any attempt: {call:?}"));
    };
    let Some((at, _)) = &attempt.end else {
        return;
    };
    let late = attempt.is("interrupted") || attempt.is("timeout");
    let inside = call.begin <= at.saturating_add(SLACK);
    findings.duplicated_unless(inside || late, format_args!("a request when {attempt} had ended: {call:?}"));
}

/// The recorded outcome of an attempt is the response it got.
fn answered(
    case: &KillEvidence<'_>,
    attempt: &AttemptTrace,
    calls: &[&ServedCall],
    findings: &mut KillFindings,
) {
    let Some((at, outcome)) = &attempt.end else {
        return;
    };
    let until = at.saturating_add(SLACK);
    let mut own = calls.iter().filter(|it| (attempt.at..=until).contains(&it.begin));
    let wanted = match outcome {
        TracedOutcome::Success => 200,
        TracedOutcome::Failure(why, number) if why == "status" => *number,
        TracedOutcome::Failure(why, _) if why == "interrupted" => {
            let died = attempt.saw(&case.kills.engines);
            return findings
                .lost_unless(died, format_args!("{attempt} is interrupted, and no engine was killed"));
        }
        TracedOutcome::Failure(..) => {
            return findings.unlawful(format_args!("{attempt} failed by {outcome:?}"));
        }
    };
    let answered = own.any(|call| call.status.map(u64::from) == Some(wanted));
    findings.lost_unless(answered, format_args!("{attempt} got no response {wanted}"));
}

fn check_results(case: &KillEvidence<'_>, findings: &mut KillFindings) {
    let mine = case.posted.iter().filter(|post| {
        let mut events = case.events.iter();
        events.any(|it| is_result_of(post, it))
    });
    for post in mine {
        findings.lost_unless(post.refused.is_none(), format_args!("a result was refused: {post:?}"));
        if let Some(accepted_at) = post.accepted_at
            && !has_success(case, post)
            && !is_over(case, post, accepted_at)
        {
            findings.lost(format_args!("a result was answered 200 and is not on record: {post:?}"));
        }
    }
    for event in case.events.iter().filter(|it| is_success(it)) {
        let planned = case.plan.commands.get(event.text("command"));
        if planned.is_some_and(|it| it.kind == CommandKind::Later) {
            let until = event.at.saturating_add(SLACK);
            let mut posted = case.posted.iter();
            let told = posted.any(|post| is_result_of(post, event) && post.first <= until);
            findings.lost_unless(told, format_args!("a recorded result was never sent: {event}"));
        }
    }
}

fn is_result_of(post: &PostedResult, event: &JournalEvent) -> bool {
    let (correlation, command) = event.key();
    correlation == post.correlation && command == post.command
}

fn has_success(case: &KillEvidence<'_>, post: &PostedResult) -> bool {
    let mut events = case.events.iter();
    events.any(|it| is_success(it) && is_result_of(post, it))
}

/// A result counts also while its item waits for a retry.
fn is_success(event: &JournalEvent) -> bool {
    event.is("attempt_succeeded") || (event.is("result_arrived") && event.text("result") == "succeeded")
}

/// Whether the item had ended without the result. A result after that changes nothing and need not be sent
/// again (decision 0011).
fn is_over(case: &KillEvidence<'_>, post: &PostedResult, accepted_at: u64) -> bool {
    case.events.iter().any(|it| {
        let gave_up = it.is("item_dead_lettered") || it.is("item_skipped");
        gave_up && it.text("correlation_id") == post.correlation && it.at <= accepted_at
    })
}
