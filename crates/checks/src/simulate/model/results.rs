//! What follows an attempt: the next command, a retry, a handler, or the end of the item.

use std::time::Duration;

use crate::simulate::case::CaseFormat;

use super::judge::{ModelDecision, has_attempts, is_throttled, judge, next_delay};
use super::judge::{ModelOutcome, ModelSignal};
use super::prediction::{DelayRange, PredictedEnd};
use super::run::{ItemPlace, ModelRun};
use super::state::{ModelItemPart, ModelItemState, ModelProgress};
use super::terms::ModelTerms;

impl ModelRun<'_> {
    /// The target has accepted the work, so it is up; the result says no more about that.
    pub(super) fn accepted(&mut self, place: ItemPlace) {
        let now = self.now;
        let item = self.item_mut(place);
        if let ModelItemState::Running(running) = &mut item.state {
            running.accepted = None;
            if let Some((breaker, ticket)) = running.ticket.take()
                && let Some(breaker) = self.breakers.get_mut(&breaker)
            {
                breaker.report(ticket, ModelSignal::Up, now);
            }
        }
    }

    /// An attempt has ended by itself or by its timeout.
    pub(super) fn attempt_ended(&mut self, place: ItemPlace, outcome: ModelOutcome) {
        let Some(work) = self.work(place).cloned() else {
            return;
        };
        let outcome = match outcome {
            ModelOutcome::Success(output) if !is_readable(&output, work.capture) => ModelOutcome::Unreadable,
            outcome => outcome,
        };
        if let ModelOutcome::Success(output) = &outcome {
            self.report_to_breaker(place, ModelSignal::Up);
            self.continue_at_once(place);
            self.succeeded(place, output);
            return;
        }
        let judgement = judge(&outcome, &work.terms);
        if let Some(open) = judgement.open {
            self.give_up(open);
        }
        match &judgement.judged {
            ModelDecision::Hold => self.trip(place),
            judged => {
                let throttled = is_throttled(&outcome, &work.terms);
                let asked = matches!(judged, ModelDecision::Retry { asked, .. } if asked.is_some());
                if asked && !throttled && work.breaker.is_some() {
                    self.give_up("a rule that retries an answer with a `Retry-After` that is not respected");
                }
                self.report_to_breaker(place, outcome.signal(throttled, work.is_call));
            }
        }
        self.continue_at_once(place);
        self.failed(place, judgement.judged);
    }

    fn report_to_breaker(&mut self, place: ItemPlace, signal: ModelSignal) {
        let now = self.now;
        if let ModelItemState::Running(running) = &self.item(place).state
            && let Some((name, ticket)) = running.ticket.clone()
            && let Some(breaker) = self.breakers.get_mut(&name)
        {
            breaker.report(ticket, signal, now);
        }
    }

    fn trip(&mut self, place: ItemPlace) {
        let now = self.now;
        if let ModelItemState::Running(running) = &self.item(place).state
            && let Some((name, ticket)) = running.ticket.clone()
            && let Some(breaker) = self.breakers.get_mut(&name)
        {
            breaker.trip(Some(ticket), now);
        }
    }

    pub(super) fn ready(&mut self, place: ItemPlace, since: Duration) {
        self.item_mut(place).state = ModelItemState::Ready { since };
    }

    /// The item continues as soon as there is a slot, before anything that is due.
    fn continue_at_once(&mut self, place: ItemPlace) {
        self.ready(place, Duration::ZERO);
    }

    fn succeeded(&mut self, place: ItemPlace, output: &str) {
        let Some(command) = self.command(place) else {
            return;
        };
        let after = command.after.len();
        let handlers = command.handler.as_ref().map_or(0, |it| it.commands.len());
        let item = self.item_mut(place);
        output.clone_into(&mut item.output);
        item.below = ModelProgress::default();
        match item.part {
            ModelItemPart::Command if after > 0 => item.part = ModelItemPart::After(0),
            ModelItemPart::After(number) if number.saturating_add(1) < after => {
                item.part = ModelItemPart::After(number.saturating_add(1));
            }
            ModelItemPart::Command | ModelItemPart::After(_) => return self.next_command(place),
            ModelItemPart::Handler(number) if number.saturating_add(1) < handlers => {
                item.part = ModelItemPart::Handler(number.saturating_add(1));
            }
            ModelItemPart::Handler(_) => return self.handled(place),
        }
        self.drop_if_stopping(place);
    }

    fn next_command(&mut self, place: ItemPlace) {
        let count = self.step(place.0).1.commands.len();
        let item = self.item_mut(place);
        item.command += 1;
        item.part = ModelItemPart::Command;
        item.main = ModelProgress::default();
        item.stopped = None;
        item.rounds = 0;
        if item.command >= count {
            self.settle(place, PredictedEnd::Succeeded);
        } else {
            self.drop_if_stopping(place);
        }
    }

    fn drop_if_stopping(&mut self, place: ItemPlace) {
        if self.is_stopping(place.0) {
            self.settle(place, PredictedEnd::Skipped);
        }
    }

    pub(super) fn is_stopping(&self, step: usize) -> bool {
        self.stopping.is_some() || self.steps[step].failing
    }

    /// The handler has succeeded. While the job stops, only what needs no further start counts.
    fn handled(&mut self, place: ItemPlace) {
        let Some(handler) = self.command(place).and_then(|it| it.handler.clone()) else {
            return;
        };
        let reason = self.item(place).stopped.unwrap_or("attempts");
        if handler.rounds == 0 {
            if handler.fails {
                return self.item_failed(place, reason);
            }
            return self.next_command(place);
        }
        let deadline = self.item_deadline(place);
        let late = deadline.is_some_and(|it| it <= self.now);
        if deadline == Some(self.now) {
            self.give_up("an attempt more at the very instant of the deadline");
        }
        if late || self.pool_refuses(place).is_some() {
            return self.item_failed(place, reason);
        }
        if handler.fails {
            self.give_up("an attempt more whose handler is to fail the workflow");
        }
        if self.is_stopping(place.0) {
            return self.settle(place, PredictedEnd::Skipped);
        }
        self.charge(place);
        self.item_mut(place).part = ModelItemPart::Command;
    }

    fn failed(&mut self, place: ItemPlace, judged: ModelDecision) {
        let item = self.item(place);
        let is_command = item.part == ModelItemPart::Command;
        // One more attempt after a handler, not a round of attempts.
        let is_extra = is_command && item.stopped.is_some();
        let is_handler = matches!(item.part, ModelItemPart::Handler(_));
        match judged {
            // A handler that fails keeps the reason of its command, whatever its own rules say.
            ModelDecision::DeadLetter if is_handler => self.command_stopped(place, "rule"),
            ModelDecision::Skip if is_handler => {
                self.give_up("a rule of a handler that skips the item");
            }
            ModelDecision::Skip => self.settle(place, PredictedEnd::Skipped),
            ModelDecision::DeadLetter => self.item_failed(place, "rule"),
            ModelDecision::Stop(reason) => self.command_stopped(place, reason),
            ModelDecision::Hold if is_extra => {
                self.give_up("an attempt more that a rule holds");
            }
            ModelDecision::Retry { .. } if is_extra => self.command_stopped(place, "attempts"),
            ModelDecision::Hold => self.hold_by_rule(place),
            ModelDecision::Retry { terms, asked } => self.retry(place, &terms, asked),
        }
    }

    fn retry(&mut self, place: ItemPlace, terms: &ModelTerms, asked: Option<Duration>) {
        let item = self.item_mut(place);
        let progress = *item.progress();
        let name = item.name.clone();
        let too_long = asked.is_some_and(|asked| asked > terms.max_retry_after);
        if !has_attempts(terms, &progress) {
            if too_long {
                self.give_up("attempts used up, and asked to wait too long");
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
        // A retry that is not made is not recorded: it is dropped if even the longest delay is allowed.
        let is_dropped = self.is_stopping(place.0) && self.choices.fixed_percent.is_none();
        let delay = if is_dropped { range.most } else { self.drawn(&of, range) };
        let is_unsure = is_dropped && !range.is_exact();
        let spent = progress.spent.saturating_add(delay);
        let is_over = terms.budget.is_some_and(|budget| spent > budget);
        let due = self.now.saturating_add(delay);
        let of_item = self.own_deadline(place).is_some_and(|it| due > it);
        let is_late = of_item || self.case.deadline.is_some_and(|it| due > it);
        if is_unsure && (is_over || is_late) {
            self.give_up("a delay that was drawn and not recorded");
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
            return self.settle(place, PredictedEnd::Skipped);
        }
        self.charge(place);
        let made = self.made.entry(of).or_default();
        made.delays.push(range);
        made.spent = progress.spent_range.plus(range);
        let total = made.spent;
        let retries = progress.retries + 1;
        *self.item_mut(place).progress() =
            ModelProgress { retries, spent, spent_range: total, previous: Some(delay), ..progress };
        self.ready(place, due);
    }

    /// The observed or assumed delay.
    fn drawn(&mut self, of: &(String, String), range: DelayRange) -> Duration {
        if range.is_exact() {
            return range.least;
        }
        if let Some(fixed_percent) = self.choices.fixed_percent {
            let width = range.most.saturating_sub(range.least);
            let offset = width.saturating_mul(fixed_percent).checked_div(100);
            return range.least.saturating_add(offset.unwrap_or_default());
        }
        let place = self.made.get(of).map_or(0, |made| made.delays.len());
        if let Some(delay) = self.choices.delay(of, place) {
            return delay;
        }
        // The retry was refused by some limit, and which one may depend on the random delay.
        self.give_up("a delay that was drawn and not recorded");
        range.least
    }

    fn hold_by_rule(&mut self, place: ItemPlace) {
        let Some((name, breaker)) = self.breaker_of(place) else {
            return;
        };
        if breaker.settings.fails {
            self.give_up("a rule that holds, and a breaker that does not");
        }
        let Some(terms) = self.work(place).map(|work| work.terms.clone()) else {
            return;
        };
        let progress = *self.item_mut(place).progress();
        if !has_attempts(&terms, &progress) {
            return self.command_stopped(place, "attempts");
        }
        if let Some(reason) = self.pool_refuses(place) {
            return self.command_stopped(place, reason);
        }
        if self.is_stopping(place.0) {
            return self.settle(place, PredictedEnd::Skipped);
        }
        self.charge(place);
        self.item_mut(place).progress().retries += 1;
        let _ = self.hold(place, name);
    }

    /// Why the pool refuses a retry of the item.
    fn pool_refuses(&self, place: ItemPlace) -> Option<&'static str> {
        let pool = self.pool?;
        let charged = self.item(place).charged;
        if pool.used >= pool.total {
            return Some("job_budget_exhausted");
        }
        (charged >= pool.share).then_some("workflow_budget_exhausted")
    }

    fn charge(&mut self, place: ItemPlace) {
        if let Some(pool) = &mut self.pool {
            pool.used += 1;
        }
        self.item_mut(place).charged += 1;
    }

    /// A start is refused. If it is the one more attempt after a handler, the item ends.
    pub(super) fn start_refused(&mut self, place: ItemPlace, reason: &'static str) {
        let item = self.item(place);
        match item.stopped {
            Some(first) if item.part == ModelItemPart::Command => self.item_failed(place, first),
            _ => self.command_stopped(place, reason),
        }
    }

    /// The current command of an item is not retried any more.
    pub(super) fn command_stopped(&mut self, place: ItemPlace, reason: &'static str) {
        let handler = self.command(place).and_then(|it| it.handler.clone());
        let item = self.item_mut(place);
        let first = *item.stopped.get_or_insert(reason);
        match item.part {
            // A handler that fails keeps the reason of the command.
            ModelItemPart::Handler(_) => self.item_failed(place, first),
            ModelItemPart::After(_) => self.item_failed(place, reason),
            ModelItemPart::Command => {
                let rounds = handler.map_or(0, |it| it.rounds.max(1));
                if item.rounds >= rounds {
                    return self.item_failed(place, first);
                }
                item.rounds += 1;
                item.part = ModelItemPart::Handler(0);
                item.below = ModelProgress::default();
                self.continue_at_once(place);
                self.drop_if_stopping(place);
            }
        }
    }
}

fn is_readable(output: &str, capture: Option<CaseFormat>) -> bool {
    match capture {
        None | Some(CaseFormat::Text) => true,
        // Scripts write a number, which is JSON too, or something that is neither.
        Some(CaseFormat::Number | CaseFormat::Json) => output.trim_end().parse::<f64>().is_ok(),
    }
}
