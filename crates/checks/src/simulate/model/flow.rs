//! Flows: which steps are planned, when they begin, and what their end means for others.

use std::collections::{BTreeMap, BTreeSet};

use crate::simulate::case::{CaseFlow, CaseFlowStep, CaseInputRole, CaseShape};

use super::plan::ModelStepKind;
use super::prediction::{PredictedEnd, PredictedJobEnd};
use super::run::ModelRun;
use super::state::{ModelItem, ModelItemState, ModelStage};

impl ModelRun<'_> {
    fn flow(&self) -> Option<&CaseFlow> {
        match &self.case.shape {
            CaseShape::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    fn flow_step(&self, step: usize) -> Option<&CaseFlowStep> {
        match &self.plan.steps[step].kind {
            ModelStepKind::Flow(it) => Some(it),
            _ => None,
        }
    }

    /// The steps that lead to the goals.
    fn planned(&self) -> BTreeSet<usize> {
        let count = self.steps.len();
        let goals = self.goals();
        let mut planned: BTreeSet<usize> = goals.into_iter().collect();
        for _ in 0..count {
            let taken: BTreeSet<String> = planned
                .iter()
                .filter_map(|step| self.flow_step(*step))
                .flat_map(|step| step.takes.iter().map(|taken| taken.name.clone()))
                .collect();
            let gives = |step: &CaseFlowStep| step.gives.iter().any(|name| taken.contains(name));
            planned.extend((0..count).filter(|it| self.flow_step(*it).is_some_and(gives)));
        }
        planned
    }

    fn goals(&self) -> Vec<usize> {
        let labels = self.flow().map(|flow| flow.goals.clone());
        let labels = labels.unwrap_or_default();
        let steps = 0..self.steps.len();
        let is_goal = |step: &usize| {
            let step = self.flow_step(*step);
            step.is_some_and(|step| labels.contains(&step.label))
        };
        steps.filter(is_goal).collect()
    }

    /// Attributes that are decided, and whether they have a value: the initial ones, and those of ended
    /// steps.
    fn attributes(&self) -> BTreeMap<String, bool> {
        let mut known = BTreeMap::new();
        for (name, _) in self.flow().map(|flow| &flow.init).into_iter().flatten() {
            let _ = known.insert(name.clone(), true);
        }
        for (number, state) in self.steps.iter().enumerate() {
            let Some(step) = self.flow_step(number) else {
                continue;
            };
            for name in &step.gives {
                let given = format!("\"{name}\":");
                let is_given = match state.stage {
                    ModelStage::Complete => state.items.iter().any(|it| it.output.contains(&given)),
                    ModelStage::Failed | ModelStage::Unreachable => false,
                    ModelStage::Waiting | ModelStage::Active => continue,
                };
                let _ = known.insert(name.clone(), is_given);
            }
        }
        known
    }

    /// An item of the step has failed: waiting and new items are dropped.
    pub(super) fn fail_flow_step(&mut self, step: usize) {
        let state = &mut self.steps[step];
        state.failing = true;
        for item in &mut state.items {
            if item.is_under_way() && !item.is_running() {
                item.state = ModelItemState::Settled(PredictedEnd::Skipped);
            }
        }
    }

    /// Begins and ends steps; whether anything changed.
    pub(super) fn advance_flow(&mut self) -> bool {
        if self.end_steps() {
            return true;
        }
        let bad = |stage| matches!(stage, ModelStage::Failed | ModelStage::Unreachable);
        let stage = |run: &Self, step: &usize| run.steps[*step].stage;
        let goals = self.goals();
        let is_lost = goals.iter().map(|it| stage(self, it)).any(bad);
        if is_lost && self.stopping.is_none() {
            self.stop("goal");
            return true;
        }
        if self.stopping.is_some() {
            return self.end_flow();
        }
        if goals.iter().all(|it| stage(self, it) == ModelStage::Complete) {
            let runs = self.steps.iter().flat_map(|it| &it.items);
            if runs.into_iter().any(ModelItem::is_under_way) {
                self.give_up("all goals are reached, and something runs");
            }
            self.end = Some(PredictedJobEnd { status: "completed", reasons: BTreeSet::new() });
            return true;
        }
        self.begin_steps()
    }

    fn end_steps(&mut self) -> bool {
        let stopping = self.stopping.is_some();
        for state in &mut self.steps {
            if state.stage != ModelStage::Active || state.items.iter().any(ModelItem::is_under_way) {
                continue;
            }
            let done = |item: &ModelItem| item.has(|fate| fate == PredictedEnd::Succeeded);
            if state.items.iter().all(done) {
                state.stage = ModelStage::Complete;
                return true;
            }
            if state.failing || stopping {
                state.stage = ModelStage::Failed;
                return true;
            }
        }
        false
    }

    fn begin_steps(&mut self) -> bool {
        let known = self.attributes();
        for number in self.planned() {
            if self.steps[number].stage != ModelStage::Waiting {
                continue;
            }
            let Some(step) = self.flow_step(number).cloned() else {
                continue;
            };
            let lost = step
                .takes
                .iter()
                .any(|taken| taken.role == CaseInputRole::Required && known.get(&taken.name) == Some(&false));
            let ready = step.takes.iter().all(|taken| known.contains_key(&taken.name));
            let now = self.now;
            if lost || ready {
                let state = &mut self.steps[number];
                state.stage = if lost { ModelStage::Unreachable } else { ModelStage::Active };
                state.began = now;
                return true;
            }
        }
        false
    }

    fn end_flow(&mut self) -> bool {
        let mut items = self.steps.iter().flat_map(|step| &step.items);
        if items.any(ModelItem::is_under_way) {
            return false;
        }
        let reasons =
            if self.stopping == Some("deadline") { ["deadline"].into() } else { self.dead_reasons(None) };
        self.end = Some(PredictedJobEnd { status: "failed", reasons });
        true
    }
}
