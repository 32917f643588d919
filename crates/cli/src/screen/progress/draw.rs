//! Draws a frame as lines of text, for a width and a height.
//!
//! Bars are ASCII: `=` done, `x` dead, `-` skipped, `>` in progress. They are readable without colours, and
//! every character is one column wide on all terminals.

use std::time::Duration;

use undaunted_engine::job::StepStage;

use super::frame::{HoldRow, NextRetry, StepRow, TimeLeft};
use super::line::{Tone, cut};
use super::{FrameLine, ProgressFrame, width};
use crate::screen::{count, plain, short};

const STEPS: usize = 8;
const HOLDS: usize = 3;
const NAME: usize = 24;
const BAR: (usize, usize) = (8, 30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl ProgressFrame<'_> {
    /// A frame: no line is wider than the terminal, and there are fewer lines than it has.
    pub(super) fn lines(&self, size: Size) -> Vec<FrameLine> {
        // The last column stays empty: terminals differ in what a character there does.
        let room = size.columns.saturating_sub(1);
        let height = size.rows.saturating_sub(1).max(1);
        let holds = self.holds.len().min(HOLDS).min(height.saturating_sub(2));
        let left = height.saturating_sub(holds.saturating_add(2));
        let retries = self.retries.len().min(left);
        let below = holds.saturating_add(retries).saturating_add(1);
        let steps = height.saturating_sub(below).max(1);
        let shown = self.shown(steps.min(STEPS));
        let names = shown.iter().map(|step| width(&plain(step.name)));
        let names = names.max().unwrap_or(0).min(NAME).min(room / 3);
        let mut lines: Vec<FrameLine> = shown.iter().map(|step| step.line(names, room)).collect();
        let next = self.retries.get(..retries).unwrap_or_default();
        let when: Vec<String> = next.iter().map(|retry| countdown(retry.due_in)).collect();
        let wide = when.iter().map(|when| width(when)).max().unwrap_or(0);
        lines.extend(next.iter().zip(when).map(|(retry, when)| retry.line(&format!("{when:<wide$}"), room)));
        lines.extend(self.holds.iter().take(holds).map(|hold| hold.line(room)));
        lines.push(self.totals(shown.len() < self.steps.len(), room));
        lines.truncate(height);
        lines
    }

    /// The steps in progress and their neighbours, as many as fit.
    fn shown(&self, room: usize) -> &[StepRow<'_>] {
        let ended = self.steps.iter().take_while(|step| step.has_ended());
        let before = if room > 4 { 2 } else { 0 };
        let from = ended.count().saturating_sub(before).min(self.steps.len().saturating_sub(room));
        let to = from.saturating_add(room).min(self.steps.len());
        self.steps.get(from..to).unwrap_or_default()
    }

    /// `  42 attempts, 3.1 a second, 12s so far, about 2m left`
    fn totals(&self, folded: bool, room: usize) -> FrameLine {
        let mut facts = Vec::new();
        if self.paused {
            facts.push((Tone::Busy, "paused".to_owned()));
        }
        if folded {
            let done = self.steps.iter().filter(|step| step.has_ended()).count();
            facts.push((Tone::Plain, format!("{done} of {} steps done", self.steps.len())));
        }
        facts.push((Tone::Plain, count(self.attempts, "attempt", "attempts")));
        if let Some(tenths) = self.attempts_in_ten_seconds {
            facts.push((Tone::Plain, format!("{}.{} a second", tenths / 10, tenths % 10)));
        }
        facts.push((Tone::Plain, format!("{} so far", short(Duration::from_secs(self.so_far.as_secs())))));
        if let Some(TimeLeft { time, step }) = self.left {
            let of = step.map(|step| format!(" of {}", plain(step))).unwrap_or_default();
            facts.push((Tone::Plain, format!("about {} left{of}", rough(time))));
        }
        let mut line = FrameLine::new(room);
        list(&mut line, "  ", &facts);
        line
    }
}

impl StepRow<'_> {
    fn line(&self, names: usize, room: usize) -> FrameLine {
        let mut line = FrameLine::new(room);
        line.push(Tone::Plain, "  ");
        let tone = match self.stage {
            StepStage::Waiting => Tone::Faint,
            StepStage::Reading(_)
            | StepStage::Running
            | StepStage::Completed
            | StepStage::Failed
            | StepStage::Skipped => Tone::Plain,
        };
        line.push(tone, &cut(&plain(self.name), names));
        line.pad(names.saturating_add(4));
        let word = match self.stage {
            StepStage::Waiting => Some((Tone::Faint, "pending")),
            StepStage::Reading(_) => Some((Tone::Busy, "reading items")),
            StepStage::Failed if self.items == 0 => Some((Tone::Bad, "failed")),
            StepStage::Running | StepStage::Completed | StepStage::Failed | StepStage::Skipped => {
                (self.items == 0).then_some((Tone::Good, "no items"))
            }
        };
        if let Some((tone, word)) = word {
            line.push(tone, word);
            return line;
        }
        let part = format!("{:>3}%", share(self.settled(), self.items, 100));
        // The length depends only on the terminal, so that it does not change between frames.
        let bar = (room / 6).min(BAR.1);
        if bar >= BAR.0 {
            self.bar(&mut line, bar);
        }
        line.push(Tone::Plain, &part);
        list(&mut line, "  ", &self.facts());
        line
    }

    /// `[=======xx->>>      ]`
    fn bar(&self, line: &mut FrameLine, cells: usize) {
        let whole = u64::try_from(cells).unwrap_or_default();
        let upto = |items: u64| share(items, self.items, whole);
        let dead = upto(self.done.saturating_add(self.dead));
        // Even one dead letter among a million is visible.
        let least = u64::from(self.dead > 0 && dead > 0);
        let done = upto(self.done).min(dead.saturating_sub(least));
        let settled = upto(self.settled());
        let waiting = self.waiting.saturating_add(self.held);
        let busy = self.running.saturating_add(waiting);
        let busy = upto(self.settled().saturating_add(busy));
        line.push(Tone::Plain, "[");
        let mut drawn = 0_u64;
        for (tone, mark, upto) in [
            (Tone::Good, "=", done),
            (Tone::Bad, "x", dead),
            (Tone::Faint, "-", settled),
            (Tone::Busy, ">", busy),
            (Tone::Plain, " ", whole),
        ] {
            let cells = usize::try_from(upto.saturating_sub(drawn)).unwrap_or_default();
            line.push(tone, &mark.repeat(cells));
            drawn = upto;
        }
        line.push(Tone::Plain, "] ");
    }

    /// The most important facts first: the last ones are dropped when the terminal is narrow.
    fn facts(&self) -> Vec<(Tone, String)> {
        if !self.is_map {
            let word = match self.stage {
                StepStage::Failed => (Tone::Bad, "failed"),
                StepStage::Completed => (Tone::Good, "done"),
                StepStage::Waiting | StepStage::Reading(_) | StepStage::Running | StepStage::Skipped => {
                    match (self.running, self.waiting) {
                        (0, 0) if self.held > 0 => (Tone::Busy, "held"),
                        (0, 1..) => (Tone::Busy, "waiting"),
                        _ => (Tone::Plain, "running"),
                    }
                }
            };
            return vec![(word.0, word.1.to_owned())];
        }
        let mut facts = vec![(Tone::Plain, format!("{} of {} done", self.done, self.items))];
        let others = [
            (Tone::Bad, self.dead, "dead"),
            (Tone::Plain, self.running, "running"),
            (Tone::Busy, self.waiting, "waiting"),
            (Tone::Busy, self.held, "held"),
            (Tone::Faint, self.skipped, "skipped"),
            (Tone::Faint, self.missing, "not waited for"),
        ];
        let others = others.iter().filter(|(_, number, _)| *number > 0);
        facts.extend(others.map(|(tone, number, word)| (*tone, format!("{number} {word}"))));
        facts
    }
}

impl HoldRow {
    /// `  12 held by api, next probe in 40s`
    fn line(&self, room: usize) -> FrameLine {
        let mut line = FrameLine::new(room);
        let held = format!("  {} held by {}", self.held, self.breaker);
        line.push(Tone::Busy, &held);
        line.push(Tone::Plain, &format!(", {}", self.next_probe));
        line
    }
}

impl NextRetry {
    /// `  in 1.8s  north: retry 1 (attempt 2) after exit status 1: north does not answer`
    fn line(&self, when: &str, room: usize) -> FrameLine {
        let mut line = FrameLine::new(room);
        line.push(Tone::Busy, &format!("  {when}  "));
        line.push(Tone::Plain, &format!("{}: retry {} (attempt {})", self.of, self.retry, self.attempt));
        if !self.why.is_empty() {
            line.push(Tone::Faint, &format!(" after {}", self.why));
        }
        line
    }
}

/// Adds as many facts as fit.
fn list(line: &mut FrameLine, before: &str, facts: &[(Tone, String)]) {
    for (place, (tone, fact)) in (0_usize..).zip(facts) {
        let between = if place == 0 { before } else { ", " };
        let needed = width(between).saturating_add(width(fact));
        if !line.has_room_for(needed) {
            break;
        }
        line.push(Tone::Plain, between);
        line.push(*tone, fact);
    }
}

/// `number` of `all` as a part of `whole`, rounded down: `whole` only if all.
fn share(number: u64, all: u64, whole: u64) -> u64 {
    let product = u128::from(number.min(all)).saturating_mul(u128::from(whole));
    let part = product / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(whole)
}

/// Tenths of a second near the end, else whole seconds; never `in 0.0s`.
fn countdown(left: Duration) -> String {
    let tenths = left.as_millis().div_ceil(100);
    match tenths {
        0 => "now".to_owned(),
        1..100 => format!("in {}.{}s", tenths / 10, tenths % 10),
        _ => {
            let seconds = u64::try_from(tenths.div_ceil(10)).unwrap_or(u64::MAX);
            format!("in {}", short(Duration::from_secs(seconds)))
        }
    }
}

/// Whole seconds, in tens from one minute on, because more precision would flicker.
fn rough(time: Duration) -> String {
    let seconds = time.as_secs().max(1);
    let seconds = if seconds < 60 { seconds } else { seconds / 10 * 10 };
    short(Duration::from_secs(seconds))
}
