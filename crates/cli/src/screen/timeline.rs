//! Attempts, and the waits and holds between them, drawn to scale: one line an item.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use undaunted_engine::job::{Item, Job, Settled};
use undaunted_engine::view::history::{BreakerHold, History, PastAttempt};
use undaunted_engine::view::{AttemptView, attempt, rfc3339};
use undaunted_policy::Timestamp;

use super::duration::{millis, short};
use super::words::count;
use crate::past::Past;
use undaunted_engine::id::{ItemId, StepId};

const DRAWN: usize = 8;
const NAME: usize = 24;
/// The shortest line, in columns.
const NARROW: usize = 10;

/// Dead letters, then items that are not settled, then the others.
pub(crate) fn worth_drawing(job: &Job) -> Vec<ItemId> {
    let kind = |wanted: fn(&Item<'_>) -> bool| {
        let steps = StepId::all().zip(&job.steps);
        steps.flat_map(move |(step, state)| {
            let items = state.items.iter();
            let items = items.filter(move |(_, item)| wanted(item));
            items.map(move |(index, _)| step.item(index))
        })
    };
    let dead = kind(|item| matches!(item, Item::Settled(Settled::Dead(_))));
    let active = kind(|item| matches!(item, Item::Active(_)));
    let settled = kind(|item| {
        matches!(
            item,
            Item::Settled(Settled::Succeeded | Settled::Skipped(_) | Settled::Missing(_))
        )
    });
    let all = dead.take(DRAWN / 2).chain(active.take(DRAWN / 2));
    let mut chosen: Vec<_> = all.chain(settled).take(DRAWN).collect();
    chosen.sort_unstable();
    chosen
}

#[derive(Serialize)]
pub(super) struct TimelineJson<'a> {
    item: &'a str,
    index: u32,
    attempts: Vec<AttemptView>,
    holds: Vec<HoldJson<'a>>,
}

#[derive(Serialize)]
struct HoldJson<'a> {
    breaker: &'a str,
    at: String,
    released_at: Option<String>,
}

pub(super) fn json(past: &Past) -> Vec<TimelineJson<'_>> {
    let items = past.items.iter();
    items
        .map(|(place, history)| TimelineJson {
            item: past.job.identity(*place),
            index: place.index,
            attempts: history
                .attempts
                .iter()
                .map(|it| attempt(&past.job, it))
                .collect(),
            holds: history
                .holds
                .iter()
                .map(|hold| HoldJson {
                    breaker: &hold.breaker,
                    at: rfc3339(hold.at),
                    released_at: hold.released.map(|(at, _)| rfc3339(at)),
                })
                .collect(),
        })
        .collect()
}

pub(super) fn show(
    out: &mut impl Write,
    past: &Past,
    now: Timestamp,
    columns: usize,
    colour: bool,
) -> io::Result<()> {
    let rows: Vec<(&str, &History)> = past
        .items
        .iter()
        .filter(|(_, history)| !history.attempts.is_empty() || !history.holds.is_empty())
        .map(|(place, history)| (past.job.identity(*place), history))
        .collect();
    let held = rows.iter().flat_map(|(_, history)| &history.holds);
    let held: Vec<Timestamp> = held.map(|hold| hold.at).collect();
    let began = rows.iter().flat_map(|(_, history)| &history.attempts);
    let began = began.map(|attempt| attempt.began);
    let Some(from) = began.chain(held.iter().copied()).min() else {
        return Ok(());
    };
    let ends = rows.iter().map(|(_, history)| end(history, now));
    let to = ends.max().unwrap_or(from);
    let names = rows.iter().map(|(name, _)| name.chars().count());
    let name_width = names.max().unwrap_or_default().min(NAME);
    let taken = name_width.saturating_add(22);
    let scale = Scale {
        from,
        span: to.since(from),
        width: columns.saturating_sub(taken).clamp(NARROW, 100),
    };
    writeln!(
        out,
        "  timeline   {} from left to right; = runs, . waits, {}x failed, + succeeded",
        short(Duration::from_millis(millis(scale.span))),
        if held.is_empty() { "" } else { "~ held, " }
    )?;
    for (name, history) in rows {
        let line = coloured(&scale.line(history, now), colour);
        let name: String = name.chars().take(NAME).collect();
        let attempts = count(history.attempts.len(), "attempt", "attempts");
        writeln!(out, "    {name:name_width$}  {line}  {attempts}")?;
    }
    Ok(())
}

fn end(history: &History, now: Timestamp) -> Timestamp {
    let last = history.attempts.last();
    let held = history.holds.last();
    match (last, &history.end) {
        (_, Some(end)) => end.at,
        _ if held.is_some_and(|hold| hold.released.is_none()) => now,
        (Some(attempt), None) => {
            let due = attempt.retry.map(|planned| planned.due);
            let ended = attempt.outcome.as_ref().map(|outcome| outcome.at);
            due.or(ended).unwrap_or(now)
        }
        (None, None) => now,
    }
}

struct Scale {
    from: Timestamp,
    span: Duration,
    width: usize,
}

impl Scale {
    fn column(&self, at: Timestamp) -> usize {
        let last = self.width.saturating_sub(1);
        let (past, span) = (at.since(self.from).as_nanos(), self.span.as_nanos());
        let wide = u128::try_from(last).unwrap_or_default();
        let column = past.saturating_mul(wide).checked_div(span).unwrap_or(0);
        usize::try_from(column).unwrap_or(last).min(last)
    }

    fn line(&self, history: &History, now: Timestamp) -> String {
        let mut cells = vec![' '; self.width];
        let next = history.attempts.iter().skip(1).map(|it| it.began);
        let next = next.map(Some).chain([None]);
        for (attempt, next) in history.attempts.iter().zip(next) {
            self.paint(
                &mut cells,
                attempt,
                next.unwrap_or_else(|| end(history, now)),
                now,
            );
        }
        for hold in &history.holds {
            self.keep(&mut cells, hold, end(history, now));
        }
        cells.into_iter().collect()
    }

    /// Draws a hold up to its release or the end of the line, but not over an attempt.
    fn keep(&self, cells: &mut [char], hold: &BreakerHold, end: Timestamp) {
        let until = hold.released.map_or(end, |(at, _)| at);
        let (from, to) = (self.column(hold.at), self.column(until));
        let kept = cells.iter_mut().take(to.saturating_add(1)).skip(from);
        for cell in kept.filter(|cell| [' ', '.'].contains(*cell)) {
            *cell = '~';
        }
    }

    /// Draws an attempt, and the wait after it until `next`.
    fn paint(&self, cells: &mut [char], attempt: &PastAttempt, next: Timestamp, now: Timestamp) {
        let ended = attempt.outcome.as_ref().map(|outcome| outcome.at);
        let (begin, end) = (attempt.began, ended.unwrap_or(now));
        let (begin, end) = (self.column(begin), self.column(end));
        let mark = match attempt.word() {
            "failed" => 'x',
            "succeeded" => '+',
            _ => '>',
        };
        let waits = attempt.retry.is_some();
        let until = if waits { self.column(next) } else { end };
        for (column, cell) in cells.iter_mut().enumerate() {
            if column == end {
                *cell = mark;
            } else if (begin..end).contains(&column) && *cell != 'x' {
                *cell = '=';
            } else if column > end && column <= until {
                *cell = '.';
            }
        }
    }
}

fn coloured(line: &str, colour: bool) -> String {
    if colour {
        line.replace('x', "\u{1b}[31mx\u{1b}[0m")
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use undaunted_engine::event::{AttemptId, Sum};
    use undaunted_engine::id::{AttemptNumber, CommandId};
    use undaunted_engine::view::history::{AttemptFailure, AttemptOutcome, ScheduledRetry};
    use undaunted_policy::{Cause, Class};

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds.saturating_mul(1000))
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn sum() -> Sum {
        Sum {
            retry: 1,
            allowed: None,
            computed: None,
            capped: None,
            drawn: None,
            spent_before: secs(0),
            spent_after: secs(0),
            budget: None,
            expires: None,
            retry_after: None,
            deadline: None,
            pool: None,
            share: None,
        }
    }

    fn tried(attempt: u32, began: u64, ended: Option<u64>, due: Option<u64>) -> PastAttempt {
        PastAttempt {
            of: AttemptId::new(StepId(0).item(0), CommandId(0), AttemptNumber(attempt)),
            round: 1,
            began: at(began),
            pass: None,
            outcome: ended.map(|ended| AttemptOutcome {
                at: at(ended),
                took: secs(ended.saturating_sub(began)),
                failure: due.map(|_| AttemptFailure {
                    cause: Cause::Exit(1),
                    class: Class::Transient,
                    rule: None,
                    row: None,
                    error: String::new(),
                }),
                stdout: None,
                stderr: None,
            }),
            retry: due.map(|due| ScheduledRetry {
                sum: sum(),
                delay: secs(1),
                due: at(due),
            }),
        }
    }

    fn drawn(attempts: Vec<PastAttempt>, now: u64, span: u64, width: usize) -> String {
        drawn_with(Vec::new(), attempts, now, span, width)
    }

    fn held(from: u64, released: Option<u64>) -> BreakerHold {
        BreakerHold {
            of: AttemptId::new(StepId(0).item(0), CommandId(0), AttemptNumber(0)),
            at: at(from),
            breaker: "api".to_owned(),
            until: None,
            expires: None,
            left: None,
            sum: None,
            released: released.map(|to| (at(to), secs(to.saturating_sub(from)))),
        }
    }

    fn drawn_with(
        holds: Vec<BreakerHold>,
        attempts: Vec<PastAttempt>,
        now: u64,
        span: u64,
        width: usize,
    ) -> String {
        let history = History {
            attempts,
            holds,
            round: 1,
            ..History::default()
        };
        let scale = Scale {
            from: at(0),
            span: secs(span),
            width,
        };
        scale.line(&history, at(now))
    }

    #[test]
    fn runs_and_waits_are_drawn_to_scale() {
        let attempts = vec![
            tried(1, 0, Some(3), Some(8)),
            tried(2, 8, Some(10), Some(18)),
            tried(3, 18, Some(20), None),
        ];
        assert_eq!(drawn(attempts, 20, 20, 21), "===x....==x.......==+");
    }

    #[test]
    fn what_runs_is_drawn_until_now_and_what_waits_until_it_is_due() {
        let running = vec![tried(1, 0, None, None)];
        assert_eq!(drawn(running, 5, 10, 11), "=====>     ");
        let waiting = vec![tried(1, 0, Some(2), Some(10))];
        assert_eq!(drawn(waiting, 5, 10, 11), "==x........");
    }

    #[test]
    fn what_is_held_is_drawn_until_it_is_let_go_or_until_now() {
        let attempts = vec![tried(1, 0, Some(2), Some(4)), tried(2, 8, Some(10), None)];
        let holds = vec![held(4, Some(8))];
        assert_eq!(drawn_with(holds, attempts, 10, 10, 11), "==x.~~~~==+");
        let fresh = vec![held(0, None)];
        assert_eq!(drawn_with(fresh, Vec::new(), 5, 10, 11), "~~~~~~     ");
    }

    #[test]
    fn attempts_that_share_a_column_leave_the_mark_of_the_last() {
        let attempts = vec![tried(1, 0, Some(0), Some(0)), tried(2, 0, Some(0), None)];
        assert_eq!(drawn(attempts, 0, 0, 4), "+   ");
    }
}
