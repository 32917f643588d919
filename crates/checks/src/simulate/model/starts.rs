//! What may start, and in which order.

use std::time::Duration;

use crate::simulate::case::{ScriptedAttempt, ScriptedEnd};

use super::judge::ModelOutcome;
use super::run::{ItemPlace, ModelRun};
use super::state::{ModelAttempt, ModelItemPart, ModelItemState, ModelProgress};

impl ModelRun<'_> {
    /// Starts or refuses one thing; whether anything changed.
    pub(super) fn start_something(&mut self) -> bool {
        if self.stopping.is_some() {
            return false;
        }
        self.expire_holds()
            || self.start_released()
            || self.probe()
            || (0..self.steps.len()).any(|step| self.start_in(step))
    }

    fn start_in(&mut self, step: usize) -> bool {
        self.in_order(step).into_iter().any(|place| self.has_room(step) && self.try_start(place))
    }

    /// Released items, then due ones by time and place, then new ones.
    fn in_order(&self, step: usize) -> Vec<ItemPlace> {
        let (state, _) = self.step(step);
        let mut freed: Vec<(Duration, usize)> = Vec::new();
        let mut due: Vec<(Duration, usize)> = Vec::new();
        let mut fresh = Vec::new();
        for (number, item) in state.items.iter().enumerate() {
            match item.state {
                ModelItemState::Ready { since } if since <= self.now => due.push((since, number)),
                ModelItemState::Held { .. } => {
                    let release = self.release_of((step, number));
                    freed.extend(release.filter(|at| *at <= self.now).map(|at| (at, number)));
                }
                ModelItemState::New if state.takes_more() => fresh.push(number),
                _ => {}
            }
        }
        freed.sort_unstable();
        due.sort_unstable();
        let due = freed.into_iter().chain(due).map(|(_, number)| number);
        due.chain(fresh).map(|number| (step, number)).collect()
    }

    fn try_start(&mut self, place: ItemPlace) -> bool {
        let item = self.item(place);
        let late = item.began.is_some() && self.own_deadline(place).is_some_and(|it| it < self.now);
        if late {
            self.start_refused(place, "deadline");
            return true;
        }
        let (is_new, is_held) = match item.state {
            ModelItemState::New => (true, false),
            ModelItemState::Held { .. } => (false, true),
            _ => (false, false),
        };
        let Some((name, breaker)) = self.breaker_of(place) else {
            self.start(place);
            return true;
        };
        if breaker.is_closed() {
            // New items come after held ones.
            if is_new && self.is_holding(&name) {
                return false;
            }
            self.release(place);
            self.start(place);
            return true;
        }
        // A breaker that holds no item is probed by the first one that asks.
        if breaker.may_probe(self.now) && (breaker.settings.fails || self.is_next_probe(place, &name)) {
            self.give_up_on_ambiguous_probe(place, &name);
            self.release(place);
            self.start(place);
            return true;
        }
        if breaker.settings.fails {
            self.start_refused(place, "circuit_open");
            return true;
        }
        if is_held || (is_new && !self.may_hold_another(place.0, &name)) {
            return false;
        }
        self.hold(place, name)
    }

    fn is_holding(&self, name: &str) -> bool {
        let mut items = self.steps.iter().flat_map(|step| &step.items);
        items.any(|item| matches!(&item.state, ModelItemState::Held { breaker, .. } if breaker == name))
    }

    pub(super) fn start(&mut self, place: ItemPlace) {
        let breaker = self.breaker_of(place).map(|(name, _)| name);
        let ticket = breaker.and_then(|name| {
            let breaker = self.breakers.get_mut(&name)?;
            Some((name, breaker.start()))
        });
        let now = self.now;
        let Some(work) = self.work(place).cloned() else {
            return;
        };
        let item = self.item_mut(place);
        let _ = item.began.get_or_insert(now);
        let is_handler = matches!(item.part, ModelItemPart::Handler(_));
        let progress: &mut ModelProgress = item.progress();
        progress.attempts += 1;
        let attempt = progress.attempts;
        let (name, script) = (item.name.clone(), item.script.clone());
        let made = self.made.entry((work.name.clone(), name)).or_default();
        made.attempts += 1;
        made.starts.push(now);
        // The attempts of a handler are numbered over all its rounds.
        let attempt = if is_handler { made.attempts } else { attempt };
        let act = self.case.act(&work.name, &script, attempt);
        // The deadline of its item bounds an attempt.
        let left = self.own_deadline(place).map(|it| it.saturating_sub(now));
        let limit = work.timeout.into_iter().chain(left).min();
        if limit == Some(act.takes) || limit == Some(Duration::ZERO) {
            self.give_up("an attempt that ends when its time is up");
        }
        let running = running(&act, now, limit, work.within);
        self.item_mut(place).state = ModelItemState::Running(ModelAttempt { ticket, ..running });
    }
}

/// How an attempt runs.
fn running(act: &ScriptedAttempt, now: Duration, limit: Option<Duration>, within: Duration) -> ModelAttempt {
    let done = now.saturating_add(act.takes);
    let timeout = limit.map(|limit| (now.saturating_add(limit), ModelOutcome::Timeout));
    let over = limit.is_some_and(|limit| limit < act.takes);
    let (end, accepted) = match &act.end {
        _ if over => (timeout, None),
        ScriptedEnd::Hang => (timeout, None),
        ScriptedEnd::Later(result) => {
            let until = done.saturating_add(within);
            let comes = done.saturating_add(result.takes);
            let outcome = outcome(&result.end).filter(|_| comes < until);
            let end = outcome.map_or((until, ModelOutcome::Timeout), |it| (comes, it));
            (Some(end), Some(done))
        }
        end => (outcome(end).map(|it| (done, it)), None),
    };
    ModelAttempt { end, accepted, ticket: None }
}

fn outcome(end: &ScriptedEnd) -> Option<ModelOutcome> {
    Some(match end {
        ScriptedEnd::Success(output) => ModelOutcome::Success(output.clone()),
        ScriptedEnd::Exit(status) => ModelOutcome::Exit(*status),
        ScriptedEnd::Signal(signal) => ModelOutcome::Signal(*signal),
        ScriptedEnd::Status(status, after) => ModelOutcome::Status(*status, *after),
        ScriptedEnd::Refused => ModelOutcome::Network,
        ScriptedEnd::Denied => ModelOutcome::Denied,
        ScriptedEnd::Hang | ScriptedEnd::Later(_) => return None,
    })
}
