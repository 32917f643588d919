//! The open steps: those that can change.
//!
//! They follow from the stages of all steps, and are kept because a list may have many thousand steps, of
//! which one is open.

use std::collections::BTreeSet;

use super::state::Job;
use super::step::StepStage;
use crate::id::StepId;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenSteps {
    /// Running steps, and those that may start.
    pub(crate) steps: BTreeSet<StepId>,
    /// Completed steps with items that are not settled.
    pub(crate) left: BTreeSet<StepId>,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
}

impl Job {
    pub(super) fn find_open_steps(&mut self) {
        self.open = self.open_steps_by_stage();
    }

    pub(crate) fn open_steps_by_stage(&self) -> OpenSteps {
        let mut open = OpenSteps::default();
        for (number, step) in StepId::all().zip(&self.steps) {
            match step.stage {
                StepStage::Waiting if !self.may_begin(number) => {}
                StepStage::Waiting | StepStage::Reading(_) | StepStage::Running => {
                    open.steps.insert(number);
                }
                StepStage::Completed => {
                    open.completed = open.completed.saturating_add(1);
                    if step.is_busy() {
                        open.left.insert(number);
                    }
                }
                StepStage::Skipped => open.completed = open.completed.saturating_add(1),
                StepStage::Failed => open.failed = open.failed.saturating_add(1),
            }
        }
        open
    }

    /// Ends a step, and opens those that waited for it.
    pub(super) fn close(&mut self, step: StepId, stage: StepStage) {
        if let Some(state) = self.step_mut(step) {
            state.stage = stage;
        }
        if !self.open.steps.remove(&step) {
            // Only a damaged journal ends a step that is not open. Look at every step then.
            return self.find_open_steps();
        }
        let count = if stage == StepStage::Failed { &mut self.open.failed } else { &mut self.open.completed };
        *count = count.saturating_add(1);
        self.open_dependents(step);
    }

    pub(super) fn open_dependents(&mut self, step: StepId) {
        let waits = |next: &StepId| {
            // Steps after a redriven map are done already.
            let stage = self.step(*next).map(|state| state.stage);
            stage == Some(StepStage::Waiting) && self.may_begin(*next)
        };
        let next = self.plan.needing(step).iter().copied().filter(waits);
        let next: Vec<StepId> = next.collect();
        self.open.steps.extend(next);
    }
}
