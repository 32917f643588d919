//! How late waits end, not counting the time in which no engine ran, all slots were taken, or a breaker held
//! the item.

use super::attempts::AttemptTrace;
use super::{KillEvidence, SLACK};
use crate::kill::findings::KillFindings;
use crate::kill::journal::JournalEvent;

/// How long the death of a keeper or a command may delay others.
const AFTERMATH: u64 = 500_000;

pub(super) fn measure(case: &KillEvidence<'_>, attempts: &[AttemptTrace], findings: &mut KillFindings) {
    for attempt in attempts {
        let (Some(due), Some(begin)) = (attempt.due, begin_of(case, attempt)) else {
            continue;
        };
        let disturbed = case.kills.keepers.iter().any(|at| {
            let over = at.saturating_add(AFTERMATH);
            *at <= begin && over >= due
        });
        // The engine was killed after the due time and has not recorded its resume yet.
        let down = case.kills.engines.iter().any(|at| (due..=begin).contains(at));
        if disturbed {
            continue;
        }
        let before = case.events.get(..attempt.index).unwrap_or_default();
        let ready = due.max(back(case.events, begin)).max(freed(case, before)).max(released(before, attempt));
        if down && ready == due {
            continue;
        }
        findings.waits += 1;
        findings.late(begin.saturating_sub(ready), || attempt.to_string());
    }
}

fn begin_of(case: &KillEvidence<'_>, attempt: &AttemptTrace) -> Option<u64> {
    let run = case.runs.iter().find(|it| it.begin.start == attempt.start);
    let until = attempt.end.as_ref().map(|(at, _)| at.saturating_add(SLACK));
    let call = || {
        case.calls.iter().find(|call| {
            call.correlation == attempt.key.0
                && call.command == attempt.key.1
                && until.is_some_and(|until| (attempt.at..=until).contains(&call.begin))
        })
    };
    let run = run.map(|run| run.begin.at);
    run.or_else(|| call().map(|call| call.begin))
}

/// When the job was last resumed.
fn back(events: &[JournalEvent], begin: u64) -> u64 {
    let back = events.iter().filter(|it| it.is("job_resumed") && it.at <= begin);
    back.map(|it| it.at).max().unwrap_or_default()
}

/// When a slot last became free while all were taken.
fn freed(case: &KillEvidence<'_>, events: &[JournalEvent]) -> u64 {
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

/// When a breaker last released this command.
fn released(events: &[JournalEvent], attempt: &AttemptTrace) -> u64 {
    let released = events.iter().rev();
    let mut released = released.filter(|it| it.is("released") && it.key() == attempt.key);
    released.next().map(|it| it.at).unwrap_or_default()
}
