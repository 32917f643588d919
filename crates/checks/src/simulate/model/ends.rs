//! How items, steps and the job end.

use std::collections::BTreeSet;

use crate::simulate::case::{CaseCompletion, CaseTolerance};

use super::plan::ModelStepKind;
use super::prediction::{PredictedEnd, PredictedJobEnd};
use super::run::{ItemPlace, ModelRun};
use super::state::{ModelItemState, ModelStage, ModelStep};

impl ModelRun<'_> {
    pub(super) fn item_failed(&mut self, place: ItemPlace, reason: &'static str) {
        let skips = match &self.step(place.0).1.kind {
            ModelStepKind::Map(map) => map.tolerance.on_item_failure == Some("skip"),
            _ => false,
        };
        let fate = if skips { PredictedEnd::Skipped } else { PredictedEnd::Dead(reason) };
        self.settle(place, fate);
    }

    pub(super) fn settle(&mut self, place: ItemPlace, fate: PredictedEnd) {
        let (state, plan) = self.step(place.0);
        let was_left = state.reached.is_some();
        // A result after the completion of its step does not count.
        let fate = if was_left { PredictedEnd::Missing } else { fate };
        let kind = plan.kind.clone();
        self.item_mut(place).state = ModelItemState::Settled(fate);
        match kind {
            ModelStepKind::Link => {}
            ModelStepKind::Map(map) => {
                if was_left {
                    return;
                }
                let stops = self.stopping.is_none() && exceeds(&self.steps[place.0], &map.tolerance);
                let decided = self.stopping.is_none() && self.decide_completion(place.0);
                if stops && decided {
                    self.give_up("a tolerance and a completion rule at the same result");
                } else if stops {
                    self.stop("tolerance");
                }
            }
            ModelStepKind::Flow(_) => {
                if matches!(fate, PredictedEnd::Dead(_)) {
                    self.fail_flow_step(place.0);
                }
            }
        }
    }

    /// Starts nothing new, drops what waits, and lets running attempts finish.
    pub(super) fn stop(&mut self, why: &'static str) {
        self.stopping = Some(why);
        for place in self.places() {
            let item = self.item_mut(place);
            if item.is_under_way() && !item.is_running() {
                self.settle(place, PredictedEnd::Skipped);
            }
        }
    }

    /// The deadline of the job ends running attempts too. An item that was tried is a dead letter.
    pub(super) fn job_deadline(&mut self) {
        if self.stopping.is_some() {
            self.give_up("the deadline passes while what runs may finish");
        }
        self.stopping = Some("deadline");
        let mut cut_off = self.places();
        cut_off.retain(|place| self.item(*place).is_under_way());
        for place in cut_off {
            if self.item(place).began.is_some() {
                self.item_failed(place, "deadline");
            } else {
                self.settle(place, PredictedEnd::Skipped);
            }
        }
    }

    /// Applies the completion rule of a step; whether it has decided.
    pub(super) fn decide_completion(&mut self, step: usize) -> bool {
        let deadline = self.completion_deadline(step);
        let (state, plan) = self.step(step);
        let ModelStepKind::Map(map) = &plan.kind else {
            return false;
        };
        let Some(rule) = map.completion.clone() else {
            return false;
        };
        if state.reached.is_some() {
            return false;
        }
        let count = |fate: fn(PredictedEnd) -> bool| state.items.iter().filter(|it| it.has(fate)).count();
        let completed = count(|it| it == PredictedEnd::Succeeded);
        let reported = count(|_| true);
        let min = required_successes(&rule, state.items.len());
        if reported == state.items.len() {
            self.reach(step, (completed >= min, false), &rule);
        } else if completed >= min {
            self.reach(step, (true, false), &rule);
        } else if deadline.is_some_and(|it| it <= self.now) {
            self.reach(step, (false, true), &rule);
        } else {
            return false;
        }
        true
    }

    fn reach(&mut self, step: usize, reached: (bool, bool), rule: &CaseCompletion) {
        self.steps[step].reached = Some(reached);
        for (of, item) in self.places() {
            let place = (of, item);
            let under_way = self.item(place).is_under_way();
            if of == step && under_way && !rule.leaves {
                self.release_breaker(place);
                self.settle(place, PredictedEnd::Missing);
            }
        }
    }

    /// An attempt that was ended says nothing about its target.
    fn release_breaker(&mut self, place: ItemPlace) {
        let now = self.now;
        if let ModelItemState::Running(running) = self.item(place).state.clone()
            && let Some((name, ticket)) = running.ticket
            && let Some(breaker) = self.breakers.get_mut(&name)
        {
            breaker.report(ticket, super::judge::ModelSignal::Nothing, now);
        }
    }

    /// Begins and ends steps; whether anything changed.
    pub(super) fn advance(&mut self) -> bool {
        if matches!(self.plan.steps.first().map(|it| &it.kind), Some(ModelStepKind::Flow(_))) {
            return self.advance_flow();
        }
        if self.stopping.is_some() {
            return self.end_stopped();
        }
        let places = 0..self.steps.len();
        let current = places.into_iter().find(|it| self.steps[*it].stage != ModelStage::Complete);
        let Some(step) = current else {
            return self.end_normally();
        };
        let now = self.now;
        let state = &mut self.steps[step];
        if state.stage == ModelStage::Waiting {
            state.stage = ModelStage::Active;
            state.began = now;
            if state.items.is_empty() {
                let _ = self.decide_completion(step);
            }
            return true;
        }
        let is_over = state.items.iter().all(super::state::ModelItem::is_settled);
        if !is_over && state.reached.is_none() {
            return false;
        }
        state.stage = ModelStage::Complete;
        let is_link = matches!(self.step(step).1.kind, ModelStepKind::Link);
        if is_link && let Some(reason) = self.dead_reasons(Some(step)).pop_first() {
            // Whatever the outcome of a map before it, this failed the job.
            self.fail_chain(reason);
        }
        true
    }

    /// A failed command of a chain fails the job, once what is left of a map has ended.
    fn fail_chain(&mut self, reason: &'static str) {
        if self.has_active_items() {
            self.give_up("a chain that fails while something was left to finish");
        }
        self.end = Some(PredictedJobEnd { status: "failed", reasons: [reason].into() });
    }

    fn has_active_items(&self) -> bool {
        let mut items = self.steps.iter().flat_map(|step| &step.items);
        items.any(super::state::ModelItem::is_under_way)
    }

    fn end_stopped(&mut self) -> bool {
        if self.has_active_items() {
            return false;
        }
        let why = self.stopping.unwrap_or("tolerance");
        // Only running attempts were waited for; everything else is complete.
        if self.steps.iter().all(|it| it.stage == ModelStage::Complete) {
            self.stopping = None;
            return self.end_normally();
        }
        self.end = Some(PredictedJobEnd { status: "failed", reasons: [why].into() });
        true
    }

    /// All steps are complete.
    fn end_normally(&mut self) -> bool {
        if self.has_active_items() {
            return false;
        }
        let reached = self.steps.iter().find_map(|step| step.reached);
        let mut reasons = self.dead_reasons(None);
        let status = match reached {
            Some((true, _)) => "completed",
            Some((false, time_was_up)) => {
                if time_was_up {
                    reasons = ["deadline"].into();
                }
                "partial"
            }
            None if reasons.is_empty() => "completed",
            None => "partial",
        };
        if status == "completed" {
            reasons.clear();
        }
        self.end = Some(PredictedJobEnd { status, reasons });
        true
    }

    pub(super) fn dead_reasons(&self, of: Option<usize>) -> BTreeSet<&'static str> {
        let steps = self.steps.iter().enumerate();
        let steps = steps.filter(|(step, _)| of.is_none_or(|of| of == *step));
        let items = steps.flat_map(|(_, step)| &step.items);
        let reasons = items.filter_map(|item| match item.state {
            ModelItemState::Settled(PredictedEnd::Dead(reason)) => Some(reason),
            _ => None,
        });
        reasons.collect()
    }
}

/// The number of items that must succeed: at least one, at most all.
fn required_successes(rule: &CaseCompletion, items: usize) -> usize {
    let min = usize::try_from(rule.min.unwrap_or(1)).unwrap_or(usize::MAX);
    min.max(1).min(items)
}

/// Whether more items have failed than tolerated.
fn exceeds(step: &ModelStep, tolerance: &CaseTolerance) -> bool {
    let count = |fate: fn(PredictedEnd) -> bool| step.items.iter().filter(|it| it.has(fate)).count();
    let failed = count(|it| matches!(it, PredictedEnd::Dead(_)));
    let settled = count(|_| true);
    let stops_at_once = tolerance.first_stops || tolerance.on_item_failure == Some("stop");
    let most = if stops_at_once { Some(1) } else { tolerance.max_failures };
    let too_many = most.is_some_and(|most| failed >= usize::try_from(most).unwrap_or(usize::MAX));
    let share = tolerance.share_percent.and_then(|it| usize::try_from(it).ok());
    let too_large = share
        .is_some_and(|percent| settled >= 10 && failed.saturating_mul(100) > percent.saturating_mul(settled));
    (failed > 0 && too_many) || too_large
}
