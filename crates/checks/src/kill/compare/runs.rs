//! Processes: what the journal says of them, and what they wrote down themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::attempts::{Attempt, Outcome};
use super::case::{Case, SLACK};
use crate::kill::found::{Found, Kind};
use crate::kill::journal::Place;
use crate::kill::outside::Run;
use crate::kill::plan::Means;

pub(super) fn check(case: &Case<'_>, attempts: &[Attempt], found: &mut Found) {
    let by_start: BTreeMap<u64, &Attempt> = attempts.iter().map(|it| (it.start, it)).collect();
    let mut begun: BTreeSet<u64> = BTreeSet::new();
    for run in case.runs {
        let line = &run.begin;
        let Some(attempt) = by_start.get(&line.start) else {
            found.lost(format!("it ran, and its start is not on record: {line:?}"));
            continue;
        };
        let same = attempt.place == (line.correlation.clone(), line.command.clone());
        found.claim(Kind::Unlawful, same && attempt.number == line.attempt, || {
            format!("it ran as another than is on record: {line:?}")
        });
        found.claim(Kind::Duplicated, begun.insert(line.start), || {
            format!("{} was begun twice", attempt.told())
        });
        one_run(case, run, attempt, found);
        given(case, run, attempts, found);
    }
    for attempt in attempts {
        let drawn = case.plan.commands.get(&attempt.place.1);
        let is_process = drawn.is_some_and(|it| it.means == Means::Process);
        let certain = match &attempt.end {
            Some((_, Outcome::Success)) => true,
            Some((_, outcome)) => outcome.is("exit"),
            None => false,
        };
        if is_process && certain && !begun.contains(&attempt.start) {
            found.lost(format!("{} has an end on record and never ran", attempt.told()));
        }
    }
    tokens(case, found);
}

/// One execution and its attempt.
fn one_run(case: &Case<'_>, run: &Run, attempt: &Attempt, found: &mut Found) {
    let (line, told) = (&run.begin, || attempt.told());
    found.claim(Kind::Duplicated, !line.beside, || {
        format!("{} began while another attempt was alive", told())
    });
    found.claim(Kind::Unlawful, line.at >= attempt.at, || {
        format!("{} began before its start was on record", told())
    });
    let due = attempt.due.unwrap_or_default();
    found.claim(Kind::Unlawful, line.at >= due, || {
        let early = due.saturating_sub(line.at);
        format!("{} began {early} µs before it was due", told())
    });
    let Some((at, outcome)) = &attempt.end else {
        return;
    };
    found.claim(Kind::Duplicated, line.at <= at.saturating_add(SLACK), || {
        format!("{} began after its end was on record", told())
    });
    let ended = run.end.map(|(_, code)| code);
    let killed = case.deeds.commands.contains(&line.pid);
    let no_keeper_died = !attempt.saw(&case.deeds.keepers);
    match outcome {
        Outcome::Success => found.claim(Kind::Lost, ended == Some(0), || {
            format!("{} succeeded, but never came to its end: {ended:?}", told())
        }),
        Outcome::Failure(why, number) => match why.as_str() {
            "exit" => {
                let same = ended.map(u64::from) == Some(*number);
                found.claim(Kind::Lost, same, || {
                    format!("{} ended with {ended:?}, not with {number}", told())
                });
            }
            "signal" => found.claim(Kind::Unlawful, killed || !no_keeper_died, || {
                format!("{} ended by a signal that nobody sent", told())
            }),
            "timeout" => {
                let drawn = case.plan.commands.get(&attempt.place.1);
                let may = drawn.is_some_and(|it| it.has_timeout);
                found.claim(Kind::Unlawful, may, || format!("{} has no timeout", told()));
            }
            "interrupted" => found.claim(Kind::Lost, !no_keeper_died, || {
                format!("{} ended with {ended:?}, and nobody killed its keeper", told())
            }),
            other => found.unlawful(format!("{} failed by {other}", told())),
        },
    }
}

/// What it was given is what others have said.
fn given(case: &Case<'_>, run: &Run, attempts: &[Attempt], found: &mut Found) {
    let line = &run.begin;
    if line.command == "sum" {
        return results(case, run, found);
    }
    let drawn = case.plan.commands.get(&line.command);
    let Some(source) = drawn.and_then(|it| it.given.as_ref()) else {
        return;
    };
    let in_map = case.plan.items.contains(&line.item);
    let said = attempts.iter().find(|it| {
        let succeeded = matches!(it.end, Some((_, Outcome::Success)));
        it.place.1 == *source && succeeded && (!in_map || it.place.0 == line.correlation)
    });
    let said = said.map(|it| format!("out-{source}-{}-{}", it.item, it.number));
    let same = said.is_some() && line.given.first() == said.as_ref();
    found.claim(Kind::Lost, same, || {
        format!("{said:?} was said, {:?} was given to {}", line.given, line.command)
    });
}

/// The results of the map, as `reduce` is given them.
fn results(case: &Case<'_>, run: &Run, found: &mut Found) {
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
    found.claim(Kind::Lost, given == expected, || {
        format!("the map came to {expected:?}, and `reduce` was given {given:?}")
    });
}

/// All attempts of a command have one token, and no other command has it.
fn tokens(case: &Case<'_>, found: &mut Found) {
    let runs = case.runs.iter().map(|run| {
        let line = &run.begin;
        ((line.correlation.clone(), line.command.clone()), line.token.clone())
    });
    let calls =
        case.calls.iter().map(|call| ((call.correlation.clone(), call.command.clone()), call.token.clone()));
    let mut of_place: BTreeMap<Place, String> = BTreeMap::new();
    let mut of_token: BTreeMap<String, Place> = BTreeMap::new();
    for (place, token) in runs.chain(calls) {
        let known = of_place.entry(place.clone()).or_insert_with(|| token.clone());
        let same = *known == token;
        let owner = of_token.entry(token).or_insert_with(|| place.clone());
        found.claim(Kind::Unlawful, same && *owner == place, || {
            format!("the token of {} is not its own for ever", place.1)
        });
    }
}
