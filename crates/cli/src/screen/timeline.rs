//! A timeline of attempts, waits and holds, drawn to scale: one line per item.

use std::io::{self, Write};
use std::time::Duration;

use undaunted_engine::view::{AttemptView, TimelineHold, TimelineView, millis};
use undaunted_policy::Timestamp;

use super::{count, plain, short};

const NAME: usize = 24;
/// The shortest line, in columns.
const NARROW: usize = 10;

pub(super) fn show(
    out: &mut impl Write,
    timeline: &[TimelineView],
    now: Timestamp,
    columns: usize,
    colour: bool,
) -> io::Result<()> {
    let rows = timeline.iter().filter(|row| !row.attempts.is_empty() || !row.holds.is_empty());
    let rows: Vec<(String, &TimelineView)> = rows.map(|row| (plain(&row.item), row)).collect();
    let held: Vec<Timestamp> = rows.iter().flat_map(|(_, row)| &row.holds).map(|hold| hold.at.0).collect();
    let began = rows.iter().flat_map(|(_, row)| &row.attempts).map(|attempt| attempt.at.0);
    let Some(from) = began.chain(held.iter().copied()).min() else {
        return Ok(());
    };
    let to = rows.iter().map(|(_, row)| end(row, now)).max().unwrap_or(from);
    let name_width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default().min(NAME);
    let taken = name_width.saturating_add(22);
    let scale = Scale { from, span: to.since(from), width: columns.saturating_sub(taken).clamp(NARROW, 100) };
    writeln!(
        out,
        "  timeline   {} from left to right; = running, . waiting, {}x failed, + succeeded",
        short(Duration::from_millis(millis(scale.span))),
        if held.is_empty() { "" } else { "~ held, " }
    )?;
    for (name, row) in rows {
        let line = coloured(&scale.line(row, now), colour);
        let name: String = name.chars().take(NAME).collect();
        let attempts = count(row.attempts.len(), "attempt", "attempts");
        writeln!(out, "    {name:name_width$}  {line}  {attempts}")?;
    }
    Ok(())
}

fn end(row: &TimelineView, now: Timestamp) -> Timestamp {
    let held = row.holds.last();
    match (row.attempts.last(), row.ended_at) {
        (_, Some(end)) => end.0,
        _ if held.is_some_and(|hold| hold.released_at.is_none()) => now,
        (Some(attempt), None) => {
            attempt.due_at.map(|due| due.0).or(attempt.ended_at.map(|end| end.0)).unwrap_or(now)
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

    fn line(&self, row: &TimelineView, now: Timestamp) -> String {
        let mut cells = vec![' '; self.width];
        let next = row.attempts.iter().skip(1).map(|it| it.at.0).map(Some).chain([None]);
        for (attempt, next) in row.attempts.iter().zip(next) {
            self.paint(&mut cells, attempt, next.unwrap_or_else(|| end(row, now)), now);
        }
        for hold in &row.holds {
            self.paint_hold(&mut cells, hold, end(row, now));
        }
        cells.into_iter().collect()
    }

    /// Draws a hold up to its release or the end of the line, but not over an attempt.
    fn paint_hold(&self, cells: &mut [char], hold: &TimelineHold, end: Timestamp) {
        let until = hold.released_at.map_or(end, |at| at.0);
        let (from, to) = (self.column(hold.at.0), self.column(until));
        let kept = cells.iter_mut().take(to.saturating_add(1)).skip(from);
        for cell in kept.filter(|cell| [' ', '.'].contains(*cell)) {
            *cell = '~';
        }
    }

    /// Draws an attempt, and the wait after it until `next`.
    fn paint(&self, cells: &mut [char], attempt: &AttemptView, next: Timestamp, now: Timestamp) {
        let (begin, end) = (attempt.at.0, attempt.ended_at.map_or(now, |end| end.0));
        let (begin, end) = (self.column(begin), self.column(end));
        let mark = match attempt.outcome {
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
    if colour { line.replace('x', "\u{1b}[31mx\u{1b}[0m") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use undaunted_engine::view::{DelayView, InstantView, MillisView};

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds.saturating_mul(1000))
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn tried(attempt: u32, began: u64, ended: Option<u64>, due: Option<u64>) -> AttemptView {
        AttemptView {
            item: String::new(),
            index: 0,
            step: None,
            command: None,
            handler: false,
            attempt,
            round: 1,
            breaker: None,
            probe: false,
            at: InstantView(at(began)),
            ended_at: ended.map(|ended| InstantView(at(ended))),
            duration_ms: ended.map(|ended| MillisView(secs(ended.saturating_sub(began)))),
            outcome: match (ended, due) {
                (None, _) => "running",
                (Some(_), None) => "succeeded",
                (Some(_), Some(_)) => "failed",
            },
            failure: None,
            cause: None,
            exit_code: None,
            signal: None,
            status: None,
            class: None,
            rule: None,
            error: None,
            retry: due.map(|_| attempt),
            delay_ms: due.map(|_| DelayView(secs(1))),
            due_at: due.map(|due| InstantView(at(due))),
        }
    }

    fn drawn(attempts: Vec<AttemptView>, now: u64, span: u64, width: usize) -> String {
        drawn_with(Vec::new(), attempts, now, span, width)
    }

    fn held(from: u64, released: Option<u64>) -> TimelineHold {
        TimelineHold {
            breaker: "api".to_owned(),
            at: InstantView(at(from)),
            released_at: released.map(|to| InstantView(at(to))),
        }
    }

    fn drawn_with(
        holds: Vec<TimelineHold>,
        attempts: Vec<AttemptView>,
        now: u64,
        span: u64,
        width: usize,
    ) -> String {
        let row = TimelineView { item: String::new(), index: 0, ended_at: None, attempts, holds };
        Scale { from: at(0), span: secs(span), width }.line(&row, at(now))
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
    fn a_running_attempt_is_drawn_until_now_and_a_wait_until_it_is_due() {
        let running = vec![tried(1, 0, None, None)];
        assert_eq!(drawn(running, 5, 10, 11), "=====>     ");
        let waiting = vec![tried(1, 0, Some(2), Some(10))];
        assert_eq!(drawn(waiting, 5, 10, 11), "==x........");
    }

    #[test]
    fn a_hold_is_drawn_until_its_release_or_until_now() {
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
