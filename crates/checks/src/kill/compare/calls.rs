//! Requests: what the journal says of them, and what the step server saw.
//!
//! A request that was under way in a crash may have been sent or not, and may be seen late; all others
//! are seen once, while their attempt runs.

use std::collections::BTreeMap;

use super::attempts::{Attempt, Outcome};
use super::case::{Call, Case, SLACK};
use crate::kill::found::{Found, Kind};
use crate::kill::journal::Place;
use crate::kill::plan::Means;

pub(super) fn check(case: &Case<'_>, attempts: &[Attempt], found: &mut Found) {
    let mut calls: BTreeMap<Place, Vec<&Call>> = BTreeMap::new();
    for call in case.calls {
        let place = (call.correlation.clone(), call.command.clone());
        calls.entry(place).or_default().push(call);
        found.claim(Kind::Duplicated, !call.beside, || {
            format!("a request while another of its command was under way: {call:?}")
        });
    }
    let mut made: BTreeMap<&Place, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts {
        let drawn = case.plan.commands.get(&attempt.place.1);
        if drawn.is_some_and(|it| [Means::Call, Means::Later].contains(&it.means)) {
            made.entry(&attempt.place).or_default().push(attempt);
        }
    }
    for (place, calls) in &calls {
        let made = made.get(place).map(Vec::as_slice).unwrap_or_default();
        found.claim(Kind::Duplicated, calls.len() <= made.len(), || {
            let (calls, made) = (calls.len(), made.len());
            format!("{calls} requests of {}, and {made} attempts on record", place.1)
        });
        if is_later(case, place) {
            // The result of a call from before a crash may come while the next one is being sent.
            continue;
        }
        for call in calls {
            within(call, made, found);
        }
    }
    for (place, made) in &made {
        if is_later(case, place) {
            continue;
        }
        let calls = calls.get(*place).map(Vec::as_slice).unwrap_or_default();
        for attempt in made {
            answered(case, attempt, calls, found);
        }
    }
}

fn is_later(case: &Case<'_>, place: &Place) -> bool {
    let drawn = case.plan.commands.get(&place.1);
    drawn.is_some_and(|it| it.means == Means::Later)
}

/// A request belongs to an attempt that runs, or that was interrupted.
fn within(call: &Call, made: &[&Attempt], found: &mut Found) {
    let before = made.iter().rev().find(|it| it.at <= call.begin);
    let Some(attempt) = before else {
        return found.duplicated(format!("a request before any attempt: {call:?}"));
    };
    let Some((at, _)) = &attempt.end else {
        return;
    };
    let late = attempt.is("interrupted") || attempt.is("timeout");
    let inside = call.begin <= at.saturating_add(SLACK);
    found.claim(Kind::Duplicated, inside || late, || {
        format!("a request when {} had ended: {call:?}", attempt.told())
    });
}

/// What an attempt was answered is what is on record.
fn answered(case: &Case<'_>, attempt: &Attempt, calls: &[&Call], found: &mut Found) {
    let Some((at, outcome)) = &attempt.end else {
        return;
    };
    let until = at.saturating_add(SLACK);
    let mut own = calls.iter().filter(|it| (attempt.at..=until).contains(&it.begin));
    let wanted = match outcome {
        Outcome::Success => 200,
        Outcome::Failure(why, number) if why == "status" => *number,
        Outcome::Failure(why, _) if why == "interrupted" => {
            let died = attempt.saw(&case.deeds.engines);
            return found.claim(Kind::Lost, died, || {
                format!("{} is interrupted, and nobody was killed", attempt.told())
            });
        }
        Outcome::Failure(..) => {
            return found.unlawful(format!("{} failed by {outcome:?}", attempt.told()));
        }
    };
    let answered = own.any(|call| call.status.map(u64::from) == Some(wanted));
    found.claim(Kind::Lost, answered, || format!("{} was answered {wanted} by nobody", attempt.told()));
}
