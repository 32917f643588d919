//! The loop: start what may start, then advance to the next instant.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::simulate::case::JobCase;

use super::breaker::{ModelBreaker, ModelBreakerPhase};
use super::plan::{ModelCommand, ModelPlan, ModelStepKind, ModelStepPlan};
use super::prediction::ObservedChoices;
use super::prediction::{PredictedAttempts, PredictedEnd, PredictedJobEnd, Prediction};
use super::state::{ModelAttempt, ModelItem, ModelItemPart, ModelItemState, ModelStage, ModelStep};

/// Something that the semantics leave unspecified, so that there is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unspecified(pub &'static str);

/// Step and item.
pub(super) type ItemPlace = (usize, usize);

pub(super) struct ModelRun<'c> {
    pub(super) case: &'c JobCase,
    pub(super) plan: ModelPlan,
    pub(super) choices: &'c ObservedChoices,
    pub(super) now: Duration,
    pub(super) steps: Vec<ModelStep>,
    pub(super) breakers: BTreeMap<String, ModelBreaker>,
    pub(super) pool: Option<ModelPool>,
    pub(super) made: BTreeMap<(String, String), PredictedAttempts>,
    /// How many of the observed releases have happened.
    pub(super) released: BTreeMap<String, usize>,
    /// Why nothing new starts.
    pub(super) stopping: Option<&'static str>,
    pub(super) end: Option<PredictedJobEnd>,
    pub(super) unspecified: Option<Unspecified>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ModelPool {
    pub(super) total: u32,
    pub(super) share: u32,
    pub(super) used: u32,
}

/// More instants than any case has that ends.
const MOST: u32 = 5000;

impl<'c> ModelRun<'c> {
    pub(super) fn new(case: &'c JobCase, choices: &'c ObservedChoices) -> Self {
        let plan = ModelPlan::of(case);
        let steps = plan.steps.iter().map(|step| ModelStep {
            items: step.items.iter().map(ModelItem::new).collect(),
            stage: ModelStage::Waiting,
            began: Duration::ZERO,
            failing: false,
            reached: None,
        });
        let breakers = plan.breakers.iter();
        let breakers = breakers.map(|(name, settings)| (name.clone(), ModelBreaker::new(settings.clone())));
        Self {
            case,
            steps: steps.collect(),
            breakers: breakers.collect(),
            plan,
            choices,
            now: Duration::ZERO,
            pool: pool_of(case),
            made: BTreeMap::new(),
            released: BTreeMap::new(),
            stopping: None,
            end: None,
            unspecified: None,
        }
    }

    pub(super) fn outcome(mut self) -> Result<Prediction, Unspecified> {
        for _ in 0..MOST {
            while self.end.is_none() && (self.advance() || self.start_something()) {}
            if let Some(unspecified) = self.unspecified {
                return Err(unspecified);
            }
            if let Some(end) = self.end.take() {
                return Ok(self.prediction(end));
            }
            let Some(next) = self.next_instant() else {
                return Err(Unspecified("nothing happens any more"));
            };
            self.now = next;
            self.handle_instant();
        }
        Err(Unspecified("it does not end"))
    }

    fn prediction(&self, end: PredictedJobEnd) -> Prediction {
        let items = self.steps.iter().flat_map(|step| &step.items);
        let fates = items.map(|item| match item.state {
            ModelItemState::Settled(fate) => (item.name.clone(), fate),
            _ => (item.name.clone(), PredictedEnd::Missing),
        });
        let items: BTreeMap<String, PredictedEnd> = fates.collect();
        let dead = items.values().filter(|it| matches!(it, PredictedEnd::Dead(_)));
        Prediction {
            end,
            dead: dead.count(),
            items,
            made: self.made.clone(),
            pool_spent: self.pool.map(|pool| pool.used),
        }
    }

    pub(super) fn give_up(&mut self, what: &'static str) {
        let _ = self.unspecified.get_or_insert(Unspecified(what));
    }

    pub(super) fn step(&self, step: usize) -> (&ModelStep, &ModelStepPlan) {
        (&self.steps[step], &self.plan.steps[step])
    }

    pub(super) fn item(&self, (step, item): ItemPlace) -> &ModelItem {
        &self.steps[step].items[item]
    }

    pub(super) fn item_mut(&mut self, (step, item): ItemPlace) -> &mut ModelItem {
        &mut self.steps[step].items[item]
    }

    /// The command that an item is at, which may be one of a handler.
    pub(super) fn work(&self, place: ItemPlace) -> Option<&ModelCommand> {
        let item = self.item(place);
        let command = self.command(place)?;
        match item.part {
            ModelItemPart::Command => Some(command),
            ModelItemPart::Handler(number) => command.handler.as_ref()?.commands.get(number),
            ModelItemPart::After(number) => command.after.get(number),
        }
    }

    /// The command of its step that an item is at, or whose handler runs.
    pub(super) fn command(&self, place: ItemPlace) -> Option<&ModelCommand> {
        let item = self.item(place);
        self.plan.steps[place.0].commands.get(item.command)
    }

    pub(super) fn places(&self) -> Vec<ItemPlace> {
        let steps = self.steps.iter().enumerate();
        let places = steps.flat_map(|(step, state)| {
            let items = 0..state.items.len();
            items.map(move |item| (step, item))
        });
        places.collect()
    }

    pub(super) fn item_deadline(&self, place: ItemPlace) -> Option<Duration> {
        let ModelStepKind::Map(map) = &self.plan.steps[place.0].kind else {
            return None;
        };
        let began = self.item(place).began.unwrap_or(self.now);
        map.limit.map(|limit| began.saturating_add(limit))
    }

    /// The deadline of what the item does now; a handler has none.
    pub(super) fn own_deadline(&self, place: ItemPlace) -> Option<Duration> {
        let part = self.item(place).part;
        let deadline = self.item_deadline(place);
        deadline.filter(|_| !matches!(part, ModelItemPart::Handler(_)))
    }

    /// Until when a completion rule waits, if it has not decided.
    pub(super) fn completion_deadline(&self, step: usize) -> Option<Duration> {
        let (state, plan) = self.step(step);
        let ModelStepKind::Map(map) = &plan.kind else {
            return None;
        };
        let rule = map.completion.as_ref()?;
        let limit = rule.deadline.unwrap_or(Duration::from_mins(5));
        let waits = state.stage == ModelStage::Active && state.reached.is_none();
        waits.then(|| state.began.saturating_add(limit))
    }

    /// The next instant. The order of two things at one instant is unspecified.
    fn next_instant(&mut self) -> Option<Duration> {
        let mut times: Vec<Duration> = Vec::new();
        let mut together: Vec<Duration> = Vec::new();
        if self.stopping != Some("deadline") {
            times.extend(self.case.deadline);
        }
        if self.stopping.is_none() {
            times.extend((0..self.steps.len()).filter_map(|it| self.completion_deadline(it)));
            times.extend(self.breakers.iter().filter_map(|(name, breaker)| {
                let until = match breaker.phase {
                    ModelBreakerPhase::Open { until } => Some(until),
                    _ => None,
                };
                until.filter(|_| self.has_waiting_items(name))
            }));
        }
        for place in self.places() {
            match self.item(place).state.clone() {
                ModelItemState::Running(ModelAttempt { end, accepted, .. }) => {
                    times.extend(accepted);
                    times.extend(end.map(|(at, _)| at));
                }
                // Retries that are due together start in the order of the items.
                ModelItemState::Ready { since } => together.push(since),
                ModelItemState::Held { .. } => {
                    together.extend(self.hold_expires(place));
                    together.extend(self.release_of(place));
                }
                _ => {}
            }
        }
        times.retain(|at| *at > self.now);
        together.retain(|at| *at > self.now);
        together.sort_unstable();
        together.dedup();
        let next = times.iter().chain(&together).min().copied();
        let all = times.iter().chain(&together);
        if all.filter(|at| Some(**at) == next).count() > 1 {
            self.give_up("two things at the same instant");
        }
        next
    }

    fn handle_instant(&mut self) {
        if self.case.deadline == Some(self.now) {
            self.job_deadline();
            return;
        }
        for step in 0..self.steps.len() {
            // A stopping job waits for running attempts, whatever its steps would wait for.
            if self.stopping.is_none() && self.completion_deadline(step) == Some(self.now) {
                self.decide_completion(step);
            }
        }
        for place in self.places() {
            if let ModelItemState::Running(running) = self.item(place).state.clone() {
                if running.accepted == Some(self.now) {
                    self.accepted(place);
                } else if let Some((at, outcome)) = running.end
                    && at == self.now
                {
                    self.attempt_ended(place, outcome);
                }
            }
        }
    }
}

/// The pool, if the case sets either limit.
fn pool_of(case: &JobCase) -> Option<ModelPool> {
    if case.pool.is_none() && case.share.is_none() {
        return None;
    }
    let total = case.pool.unwrap_or(20).min(50);
    Some(ModelPool { total, share: case.share.unwrap_or(3).min(5).min(total), used: 0 })
}
