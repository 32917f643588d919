//! What comes of an attempt: the next command, a retry, a handler, or the end of the item.

use std::time::Duration;

use crate::simulate::case::Format;

use super::failure::{Outcome, Signal};
use super::judge::{Judged, has_attempts, is_throttled, judge, next_delay};
use super::prediction::{Fate, Range};
use super::run::{Place, Run};
use super::state::{Doing, Part, Progress};
use super::terms::Terms;

impl Run<'_> {
    /// Somebody has taken the work on: they are there, and their result says no more about that.
    pub(super) fn taken_on(&mut self, place: Place) {
        let now = self.now;
        let Some(item) = self.item_mut(place) else {
            return;
        };
        if let Doing::Running(running) = &mut item.doing {
            running.accepted = None;
            if let Some((gate, ticket)) = running.ticket.take()
                && let Some(gate) = self.gates.get_mut(&gate)
            {
                gate.report(ticket, Signal::Up, now);
            }
        }
    }

    /// An attempt has ended by itself, or because its time was up.
    pub(super) fn attempt_ended(&mut self, place: Place, outcome: Outcome) {
        let Some(work) = self.work(place).cloned() else {
            return;
        };
        let outcome = match outcome {
            Outcome::Success(output) if !is_readable(&output, work.capture) => Outcome::Unreadable,
            outcome => outcome,
        };
        if let Outcome::Success(output) = &outcome {
            self.tell_gate(place, Signal::Up);
            self.go_on(place);
            self.succeeded(place, output);
            return;
        }
        let judgement = judge(&outcome, &work.terms);
        if let Some(open) = judgement.open {
            self.leave_open(open);
        }
        match &judgement.judged {
            Judged::Hold => self.trip(place),
            judged => {
                let throttled = is_throttled(&outcome, &work.terms);
                let asked = matches!(judged, Judged::Retry { asked, .. } if asked.is_some());
                if asked && !throttled && work.gate.is_some() {
                    self.leave_open("a rule that retries an answer with a wait that nobody listens to");
                }
                self.tell_gate(place, outcome.signal(throttled, work.is_call));
            }
        }
        self.go_on(place);
        self.failed(place, judgement.judged);
    }

    fn tell_gate(&mut self, place: Place, signal: Signal) {
        let now = self.now;
        if let Some(Doing::Running(running)) = self.item(place).map(|item| &item.doing)
            && let Some((name, ticket)) = running.ticket.clone()
            && let Some(gate) = self.gates.get_mut(&name)
        {
            gate.report(ticket, signal, now);
        }
    }

    fn trip(&mut self, place: Place) {
        let now = self.now;
        if let Some(Doing::Running(running)) = self.item(place).map(|item| &item.doing)
            && let Some((name, ticket)) = running.ticket.clone()
            && let Some(gate) = self.gates.get_mut(&name)
        {
            gate.trip(Some(ticket), now);
        }
    }

    pub(super) fn ready(&mut self, place: Place, since: Duration) {
        if let Some(item) = self.item_mut(place) {
            item.doing = Doing::Ready { since };
        }
    }

    /// It goes on as soon as there is room, before anything that is due: it does not wait for
    /// anything else.
    fn go_on(&mut self, place: Place) {
        self.ready(place, Duration::ZERO);
    }

    fn succeeded(&mut self, place: Place, output: &str) {
        let Some(command) = self.command(place) else {
            return;
        };
        let after = command.after.len();
        let handlers = command.handler.as_ref().map_or(0, |it| it.commands.len());
        let Some(item) = self.item_mut(place) else {
            return;
        };
        output.clone_into(&mut item.output);
        item.below = Progress::default();
        match item.part {
            Part::Command if after > 0 => item.part = Part::After(0),
            Part::After(number) if number.saturating_add(1) < after => {
                item.part = Part::After(number.saturating_add(1));
            }
            Part::Command | Part::After(_) => return self.next_command(place),
            Part::Handler(number) if number.saturating_add(1) < handlers => {
                item.part = Part::Handler(number.saturating_add(1));
            }
            Part::Handler(_) => return self.handled(place),
        }
        self.drop_if_stopping(place);
    }

    fn next_command(&mut self, place: Place) {
        let count = self.step(place.0).map_or(0, |(_, plan)| plan.commands.len());
        let Some(item) = self.item_mut(place) else {
            return;
        };
        item.command = item.command.saturating_add(1);
        item.part = Part::Command;
        item.main = Progress::default();
        item.stopped = None;
        item.rounds = 0;
        if item.command >= count {
            self.settle(place, Fate::Succeeded);
        } else {
            self.drop_if_stopping(place);
        }
    }

    /// What would go on does not while nothing new starts.
    fn drop_if_stopping(&mut self, place: Place) {
        if self.is_stopping(place.0) {
            self.settle(place, Fate::Skipped);
        }
    }

    pub(super) fn is_stopping(&self, step: usize) -> bool {
        self.stopping.is_some() || self.steps.get(step).is_some_and(|it| it.failing)
    }

    /// All commands of the handler have succeeded. While the job stops, what that comes to without
    /// another start stands.
    fn handled(&mut self, place: Place) {
        let Some(handler) = self.command(place).and_then(|it| it.handler.clone()) else {
            return;
        };
        let reason = self.item(place).and_then(|item| item.stopped);
        let reason = reason.unwrap_or("attempts");
        if handler.rounds == 0 {
            if handler.fails {
                return self.item_failed(place, reason);
            }
            return self.next_command(place);
        }
        let deadline = self.item_deadline(place);
        let late = deadline.is_some_and(|it| it <= self.now);
        if deadline == Some(self.now) {
            self.leave_open("an attempt more at the very instant of the deadline");
        }
        if late || self.pool_refuses(place).is_some() {
            return self.item_failed(place, reason);
        }
        if handler.fails {
            self.leave_open("an attempt more whose handler is to fail the workflow");
        }
        if self.is_stopping(place.0) {
            return self.settle(place, Fate::Skipped);
        }
        let _ = self.charge(place);
        if let Some(item) = self.item_mut(place) {
            item.part = Part::Command;
        }
    }

    fn failed(&mut self, place: Place, judged: Judged) {
        let Some(item) = self.item(place) else { return };
        let is_command = item.part == Part::Command;
        // One attempt more was made, not a round of them.
        let is_extra = is_command && item.stopped.is_some();
        let is_handler = matches!(item.part, Part::Handler(_));
        match judged {
            // A handler that fails keeps the reason of its command, whatever its own rules say.
            Judged::DeadLetter if is_handler => self.command_stopped(place, "rule"),
            Judged::Skip if is_handler => {
                self.leave_open("a rule of a handler that skips the item");
            }
            Judged::Skip => self.settle(place, Fate::Skipped),
            Judged::DeadLetter => self.item_failed(place, "rule"),
            Judged::Stop(reason) => self.command_stopped(place, reason),
            Judged::Hold if is_extra => {
                self.leave_open("an attempt more that a rule holds");
            }
            Judged::Retry { .. } if is_extra => self.command_stopped(place, "attempts"),
            Judged::Hold => self.hold_by_rule(place),
            Judged::Retry { terms, asked } => self.retry(place, &terms, asked),
        }
    }

    fn retry(&mut self, place: Place, terms: &Terms, asked: Option<Duration>) {
        let Some(item) = self.item_mut(place) else {
            return;
        };
        let progress = *item.progress();
        let name = item.name.clone();
        let too_long = asked.is_some_and(|asked| asked > terms.max_retry_after);
        if !has_attempts(terms, &progress) {
            if too_long {
                self.leave_open("attempts used up, and asked to wait too long");
            }
            return self.command_stopped(place, "attempts");
        }
        if too_long {
            return self.command_stopped(place, "retry_after_exceeds_limit");
        }
        let range = next_delay(terms, &progress, asked);
        let Some(work) = self.work(place).map(|work| work.name.clone()) else {
            return;
        };
        let of = (work, name);
        // What is not made is not recorded either: it is dropped if the longest delay is allowed.
        let is_dropped = self.is_stopping(place.0) && self.seen.guess.is_none();
        let delay = if is_dropped { range.most } else { self.drawn(&of, range) };
        let is_unsure = is_dropped && !range.is_exact();
        let spent = progress.spent.saturating_add(delay);
        let is_over = terms.budget.is_some_and(|budget| spent > budget);
        let due = self.now.saturating_add(delay);
        let of_item = self.own_deadline(place).is_some_and(|it| due > it);
        let is_late = of_item || self.case.deadline.is_some_and(|it| due > it);
        if is_unsure && (is_over || is_late) {
            self.leave_open("a delay that was drawn and not recorded");
        }
        if is_over {
            return self.command_stopped(place, "retry_budget");
        }
        if is_late {
            return self.command_stopped(place, "deadline");
        }
        if let Some(reason) = self.pool_refuses(place) {
            return self.command_stopped(place, reason);
        }
        if self.is_stopping(place.0) {
            return self.settle(place, Fate::Skipped);
        }
        let _ = self.charge(place);
        let made = self.made.entry(of).or_default();
        made.delays.push(range);
        made.spent = progress.spent_range.plus(range);
        let total = made.spent;
        if let Some(item) = self.item_mut(place) {
            *item.progress() = Progress {
                retries: progress.retries.saturating_add(1),
                spent,
                spent_range: total,
                previous: Some(delay),
                ..progress
            };
        }
        self.ready(place, due);
    }

    /// The delay: as it was seen, or guessed.
    fn drawn(&mut self, of: &(String, String), range: Range) -> Duration {
        if range.is_exact() {
            return range.least;
        }
        if let Some(guess) = self.seen.guess {
            let width = range.most.saturating_sub(range.least);
            let offset = width.saturating_mul(guess).checked_div(100);
            return range.least.saturating_add(offset.unwrap_or_default());
        }
        let place = self.made.get(of).map_or(0, |made| made.delays.len());
        if let Some(delay) = self.seen.delay(of, place) {
            return delay;
        }
        // It was not made: some limit refused it, and which one may depend on what was drawn.
        self.leave_open("a delay that was drawn and not recorded");
        range.least
    }

    fn hold_by_rule(&mut self, place: Place) {
        let Some((name, gate)) = self.gate_of(place) else {
            return;
        };
        if gate.settings.fails {
            self.leave_open("a rule that holds, and a breaker that does not");
        }
        let Some(terms) = self.work(place).map(|work| work.terms.clone()) else {
            return;
        };
        let Some(progress) = self.item_mut(place).map(|item| *item.progress()) else {
            return;
        };
        if !has_attempts(&terms, &progress) {
            return self.command_stopped(place, "attempts");
        }
        if let Some(reason) = self.pool_refuses(place) {
            return self.command_stopped(place, reason);
        }
        if self.is_stopping(place.0) {
            return self.settle(place, Fate::Skipped);
        }
        let _ = self.charge(place);
        if let Some(item) = self.item_mut(place) {
            let progress = item.progress();
            progress.retries = progress.retries.saturating_add(1);
        }
        let _ = self.hold(place, name);
    }

    /// Why the pool has nothing for an item, if it has nothing.
    fn pool_refuses(&self, place: Place) -> Option<&'static str> {
        let pool = self.pool?;
        let charged = self.item(place)?.charged;
        if pool.used >= pool.total {
            return Some("job_budget_exhausted");
        }
        (charged >= pool.share).then_some("workflow_budget_exhausted")
    }

    /// Takes a unit of the pool; whether there was one.
    fn charge(&mut self, place: Place) -> bool {
        if self.pool_refuses(place).is_some() {
            return false;
        }
        if let Some(pool) = &mut self.pool {
            pool.used = pool.used.saturating_add(1);
        }
        if let Some(item) = self.item_mut(place) {
            item.charged = item.charged.saturating_add(1);
        }
        true
    }

    /// An attempt that was to start does not. If it is one more after a handler, that is the end.
    pub(super) fn start_refused(&mut self, place: Place, reason: &'static str) {
        let Some(item) = self.item(place) else { return };
        match item.stopped {
            Some(first) if item.part == Part::Command => self.item_failed(place, first),
            _ => self.command_stopped(place, reason),
        }
    }

    /// The command an item is at is tried no further.
    pub(super) fn command_stopped(&mut self, place: Place, reason: &'static str) {
        let handler = self.command(place).and_then(|it| it.handler.clone());
        let Some(item) = self.item_mut(place) else {
            return;
        };
        let first = *item.stopped.get_or_insert(reason);
        match item.part {
            // A handler that fails keeps the reason of the command.
            Part::Handler(_) => self.item_failed(place, first),
            Part::After(_) => self.item_failed(place, reason),
            Part::Command => {
                let rounds = handler.map_or(0, |it| it.rounds.max(1));
                if item.rounds >= rounds {
                    return self.item_failed(place, first);
                }
                item.rounds = item.rounds.saturating_add(1);
                item.part = Part::Handler(0);
                item.below = Progress::default();
                self.go_on(place);
                self.drop_if_stopping(place);
            }
        }
    }
}

fn is_readable(output: &str, capture: Option<Format>) -> bool {
    match capture {
        None | Some(Format::Text) => true,
        // What scripts write is a number, which is JSON too, or neither.
        Some(Format::Number | Format::Json) => output.trim_end().parse::<f64>().is_ok(),
    }
}
