//! Which steps something can happen to.
//!
//! Follows from the stages of the steps, and is kept beside them so that a list of many thousand
//! commands costs no more for each than a short one.

use std::collections::BTreeSet;

use super::state::Job;
use super::step::StepStage;
use crate::id::StepId;

/// The steps at work, those that may begin, and how many are behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenSteps {
    /// Those at work, and those that may begin.
    pub(crate) steps: BTreeSet<StepId>,
    /// Those that are complete and have items that go on.
    pub(crate) left: BTreeSet<StepId>,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
}

impl Job {
    /// Looks at every step.
    pub(super) fn find_open(&mut self) {
        self.open = self.found_open();
    }

    /// What looking at every step finds.
    pub(crate) fn found_open(&self) -> OpenSteps {
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

    /// A step has come to its end; those that waited for it may begin.
    pub(super) fn close(&mut self, step: StepId, stage: StepStage) {
        if let Some(state) = self.step_mut(step) {
            state.stage = stage;
        }
        if !self.open.steps.remove(&step) {
            // A step that was not at work cannot end; whatever this is, look at everything.
            return self.find_open();
        }
        let count = if stage == StepStage::Failed {
            &mut self.open.failed
        } else {
            &mut self.open.completed
        };
        *count = count.saturating_add(1);
        self.open_what_waited_for(step);
    }

    /// Steps that waited for a step may begin.
    pub(super) fn open_what_waited_for(&mut self, step: StepId) {
        let waits = |next: &StepId| {
            // Those after a map that is redriven have been through already.
            let stage = self.step(*next).map(|state| state.stage);
            stage == Some(StepStage::Waiting) && self.may_begin(*next)
        };
        let next = self.plan.needing(step).iter().copied().filter(waits);
        let next: Vec<StepId> = next.collect();
        self.open.steps.extend(next);
    }
}
