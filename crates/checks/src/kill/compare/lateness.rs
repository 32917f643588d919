//! How late waits end: not counting the time in which nobody ran the job, all slots were taken, or a
//! breaker held it.

use super::attempts::Attempt;
use super::case::{Case, SLACK};
use crate::kill::found::Found;
use crate::kill::journal::Event;

/// How long after the death of a keeper, or a command, somebody may still be busy with it.
const AFTERMATH: u64 = 500_000;

pub(super) fn measure(case: &Case<'_>, attempts: &[Attempt], found: &mut Found) {
    for attempt in attempts {
        let (Some(due), Some(begin)) = (attempt.due, begin_of(case, attempt)) else {
            continue;
        };
        let disturbed = case.deeds.keepers.iter().any(|at| {
            let over = at.saturating_add(AFTERMATH);
            *at <= begin && over >= due
        });
        // Whoever was killed when it was due, and has not said yet that it is back.
        let down = case.deeds.engines.iter().any(|at| (due..=begin).contains(at));
        if disturbed {
            continue;
        }
        let before = case.events.get(..attempt.index).unwrap_or_default();
        let ready = due.max(back(case.events, begin)).max(freed(case, before)).max(released(before, attempt));
        if down && ready == due {
            continue;
        }
        found.waits = found.waits.saturating_add(1);
        found.late(begin.saturating_sub(ready), || attempt.told());
    }
}

/// When it really began.
fn begin_of(case: &Case<'_>, attempt: &Attempt) -> Option<u64> {
    let run = case.runs.iter().find(|it| it.begin.start == attempt.start);
    let until = attempt.end.as_ref().map(|(at, _)| at.saturating_add(SLACK));
    let call = || {
        case.calls.iter().find(|call| {
            call.correlation == attempt.place.0
                && call.command == attempt.place.1
                && until.is_some_and(|until| (attempt.at..=until).contains(&call.begin))
        })
    };
    let run = run.map(|run| run.begin.at);
    run.or_else(|| call().map(|call| call.begin))
}

/// When somebody last took the job up again.
fn back(events: &[Event], begin: u64) -> u64 {
    let back = events.iter().filter(|it| it.is("job_resumed") && it.at <= begin);
    back.map(|it| it.at).max().unwrap_or_default()
}

/// When a slot last became free while all were taken.
fn freed(case: &Case<'_>, events: &[Event]) -> u64 {
    let Some(width) = case.plan.width else {
        return 0;
    };
    let (mut running, mut freed) = (0_usize, 0);
    for event in events {
        match event.kind.as_str() {
            "attempt_started" => running = running.saturating_add(1),
            "attempt_succeeded" | "attempt_failed" => {
                if running >= width {
                    freed = event.at;
                }
                running = running.saturating_sub(1);
            }
            _ => {}
        }
    }
    freed
}

/// When a breaker last let this command go.
fn released(events: &[Event], attempt: &Attempt) -> u64 {
    let released = events.iter().rev();
    let mut released = released.filter(|it| it.is("released") && it.place() == attempt.place);
    released.next().map(|it| it.at).unwrap_or_default()
}
