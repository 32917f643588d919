//! Compares processes in the journal with what the commands recorded themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::attempts::{AttemptTrace, TracedOutcome};
use super::{KillEvidence, SLACK};
use crate::kill::findings::KillFindings;
use crate::kill::journal::CommandKey;
use crate::kill::plan::CommandKind;
use crate::kill::record::CommandRun;

pub(super) fn check(case: &KillEvidence<'_>, attempts: &[AttemptTrace], findings: &mut KillFindings) {
    let by_start: BTreeMap<u64, &AttemptTrace> = attempts.iter().map(|it| (it.start, it)).collect();
    let mut begun: BTreeSet<u64> = BTreeSet::new();
    for run in case.runs {
        let line = &run.begin;
        let Some(attempt) = by_start.get(&line.start) else {
            findings.lost(format_args!("it ran, and its start is not on record: {line:?}"));
            continue;
        };
        let same = attempt.key == (line.correlation.clone(), line.command.clone());
        findings.unlawful_unless(
            same && attempt.number == line.attempt,
            format_args!("it ran as another than is on record: {line:?}"),
        );
        findings.duplicated_unless(begun.insert(line.start), format_args!("{attempt} was begun twice"));
        one_run(case, run, attempt, findings);
        given(case, run, attempts, findings);
    }
    for attempt in attempts {
        let planned = case.plan.commands.get(&attempt.key.1);
        let is_process = planned.is_some_and(|it| it.kind == CommandKind::Process);
        let certain = match &attempt.end {
            Some((_, TracedOutcome::Success)) => true,
            Some((_, outcome)) => outcome.is("exit"),
            None => false,
        };
        if is_process && certain && !begun.contains(&attempt.start) {
            findings.lost(format_args!("{attempt} has an end on record and never ran"));
        }
    }
    tokens(case, findings);
}

fn one_run(case: &KillEvidence<'_>, run: &CommandRun, attempt: &AttemptTrace, findings: &mut KillFindings) {
    let line = &run.begin;
    findings
        .duplicated_unless(!line.overlaps, format_args!("{attempt} began while another attempt was alive"));
    findings.unlawful_unless(
        line.at >= attempt.recorded,
        format_args!("{attempt} began before its start was on record"),
    );
    let due = attempt.due.unwrap_or_default();
    let early = due.saturating_sub(line.at);
    findings.unlawful_unless(early == 0, format_args!("{attempt} began {early} µs before it was due"));
    let Some((at, outcome)) = &attempt.end else {
        return;
    };
    findings.duplicated_unless(
        line.at <= at.saturating_add(SLACK),
        format_args!("{attempt} began after its end was on record"),
    );
    let ended = run.end.map(|(_, code)| code);
    let killed = case.kills.commands.contains(&line.pid);
    let no_keeper_died = !attempt.saw(&case.kills.keepers);
    match outcome {
        TracedOutcome::Success => findings.lost_unless(
            ended == Some(0),
            format_args!("{attempt} succeeded, but never came to its end: {ended:?}"),
        ),
        TracedOutcome::Failure(why, number) => match why.as_str() {
            "exit" => {
                let same = ended.map(u64::from) == Some(*number);
                findings.lost_unless(same, format_args!("{attempt} ended with {ended:?}, not with {number}"));
            }
            "signal" => findings.unlawful_unless(
                killed || !no_keeper_died,
                format_args!("{attempt} ended by a signal that was not sent"),
            ),
            "timeout" => {
                let planned = case.plan.commands.get(&attempt.key.1);
                let may = planned.is_some_and(|it| it.has_timeout);
                findings.unlawful_unless(may, format_args!("{attempt} has no timeout"));
            }
            "interrupted" => findings.lost_unless(
                !no_keeper_died,
                format_args!("{attempt} ended with {ended:?}, and its keeper was not killed"),
            ),
            other => findings.unlawful(format_args!("{attempt} failed by {other}")),
        },
    }
}

/// A command was given what others have written.
fn given(case: &KillEvidence<'_>, run: &CommandRun, attempts: &[AttemptTrace], findings: &mut KillFindings) {
    let line = &run.begin;
    if line.command == "sum" {
        return results(case, run, findings);
    }
    let planned = case.plan.commands.get(&line.command);
    let Some(source) = planned.and_then(|it| it.given.as_ref()) else {
        return;
    };
    let in_map = case.plan.items.contains(&line.item);
    let output = attempts.iter().find(|it| {
        let succeeded = matches!(it.end, Some((_, TracedOutcome::Success)));
        it.key.1 == *source && succeeded && (!in_map || it.key.0 == line.correlation)
    });
    let output = output.map(|it| format!("out-{source}-{}-{}", it.item, it.number));
    let same = output.is_some() && line.given.first() == output.as_ref();
    findings.lost_unless(
        same,
        format_args!("{output:?} was output, {:?} was given to {}", line.given, line.command),
    );
}

/// `reduce` was given the results of the map.
fn results(case: &KillEvidence<'_>, run: &CommandRun, findings: &mut KillFindings) {
    let given = run.begin.given.first().map(String::as_str).unwrap_or_default();
    let given: Value = serde_json::from_str(given).unwrap_or_default();
    let list = given.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let given: Vec<_> = list.iter().map(|it| (text(it, "item"), text(it, "status"))).collect();
    let expected: Vec<_> = case
        .plan
        .items
        .iter()
        .map(|item| {
            let done = case.events.iter().any(|it| it.is("item_succeeded") && it.text("item") == item);
            let status = if done { "succeeded" } else { "dead" };
            (Some(item.clone()), Some(status.to_owned()))
        })
        .collect();
    findings.lost_unless(
        given == expected,
        format_args!("the map came to {expected:?}, and `reduce` was given {given:?}"),
    );
}

/// All attempts of a command have one token, which no other command has. A handler has one for each round.
fn tokens(case: &KillEvidence<'_>, findings: &mut KillFindings) {
    let runs = case.runs.iter().map(|run| {
        let line = &run.begin;
        ((line.correlation.clone(), line.command.clone()), line.token.clone())
    });
    let calls =
        case.calls.iter().map(|call| ((call.correlation.clone(), call.command.clone()), call.token.clone()));
    let mut of_key: BTreeMap<CommandKey, String> = BTreeMap::new();
    let mut of_token: BTreeMap<String, CommandKey> = BTreeMap::new();
    for (key, token) in runs.chain(calls) {
        let known = of_key.entry(key.clone()).or_insert_with(|| token.clone());
        let is_handler = case.plan.commands.get(&key.1).is_some_and(|it| it.is_handler);
        let same = is_handler || *known == token;
        let owner = of_token.entry(token).or_insert_with(|| key.clone());
        findings
            .unlawful_unless(same && *owner == key, format_args!("the token of {} is not its own", key.1));
    }
}
