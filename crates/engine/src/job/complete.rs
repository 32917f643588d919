//! Steps that are completed without all their items, and what such a completion means for the job.

use undaunted_policy::{CompletionTally, Reason};

use super::item::{ItemState, SettledItem};
use super::state::Job;
use super::step::{StepStage, StepState};
use crate::effect::ends_running;
use crate::event::{CompletionReached, CompletionWhy, LateResult, StoredText, codec};
use crate::id::{ItemId, StepId};
use crate::stored::stored;
use crate::workflow::OnComplete;

stored! {
    /// What went wrong with a job as a whole.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct JobFailures {
        pub stopped: Option<Reason> = 0 with "codec::maybe_reason" has_nil,
        pub failure: Option<JobFailure> = 1,
        /// The first stopped command that its handler recovered.
        pub recovered: Option<JobFailure> = 2,
    }

    #[derive(Clone, Debug, PartialEq)]
    pub struct JobFailure {
        pub reason: Reason = 0 with "codec::reason",
        pub error: StoredText = 1,
    }
}

impl StepState {
    pub fn reports(&self) -> CompletionTally {
        CompletionTally {
            target: self.items.len().into(),
            completed: self.succeeded.into(),
            // A skipped item has reported too: the rule does not wait for it.
            failed: self.dead.saturating_add(self.skipped).into(),
        }
    }
}

impl Job {
    pub(crate) fn counts_late_results(&self) -> bool {
        self.submitted.late_results_count == Some(true)
    }

    /// Whether running items continue after the step is completed.
    pub(crate) fn leaves(&self, step: StepId) -> bool {
        self.plan.completion(step).is_some_and(|(_, then)| then == OnComplete::Leave)
    }

    /// Why an item must not continue.
    pub(crate) fn end_reason(&self, item: ItemId) -> Option<Reason> {
        let completed_early = || {
            let state = self.step(item.step);
            let state = state.filter(|state| state.is_without(item.index))?;
            let ends = !self.leaves(item.step) || self.open.failed > 0;
            let reached = state.reached.filter(|_| ends);
            reached.map(|reached| reached.reason())
        };
        let failed = || self.has_failed_in(item.step).then_some(Reason::Tolerance);
        self.is_stopping().or_else(completed_early).or_else(failed)
    }

    /// Whether a flow step starts nothing more because one of its items or a goal has failed. Running
    /// attempts finish.
    fn has_failed_in(&self, step: StepId) -> bool {
        let Some(call) = self.plan.call(step) else { return false };
        let failed = self.step(step).is_some_and(|state| state.dead > state.forgiven);
        (failed && !call.completion.best_effort) || self.has_missed_a_goal()
    }

    /// Whether a running item must be ended.
    pub fn ends(&self, item: ItemId) -> bool {
        self.end_reason(item).is_some_and(ends_running)
    }

    pub(super) fn completion_reached(&mut self, reached: &CompletionReached) {
        if let Some(state) = self.step_mut(reached.step) {
            state.reached = Some(*reached);
        }
    }

    /// Whether a result of an item, arriving now, is its first and comes too late.
    pub fn may_report_late(&self, item: ItemId) -> bool {
        let state = self.step(item.step).filter(|state| !state.heard.contains(&item.index));
        let found = state.and_then(|state| state.items.get(item.index));
        matches!(found, Some(ItemState::Settled(settled)) if settled != SettledItem::Succeeded)
    }

    /// Whether late results of a step count: only completion rules leave results out.
    pub(crate) fn counts_late_result_of(&self, step: StepId) -> bool {
        let reached = self.step(step).and_then(|state| state.reached);
        self.counts_late_results() && reached.is_some_and(|reached| reached.is_best_effort())
    }

    pub(super) fn late_result(&mut self, late: &LateResult) {
        let item = late.item();
        let Some(state) = self.step_mut(late.step) else { return };
        state.heard.insert(late.index);
        if !late.counted {
            return;
        }
        state.late.insert(late.index);
        // An attempt that was still running settles its item itself.
        let Some(ItemState::Settled(settled)) = state.items.get(late.index) else { return };
        if late.reason.is_some() {
            return;
        }
        let count = match settled {
            SettledItem::Succeeded => return,
            SettledItem::Dead(_) => &mut state.dead,
            SettledItem::Skipped(_) => &mut state.skipped,
            SettledItem::Missing(_) => &mut state.missing,
        };
        *count = count.saturating_sub(1);
        state.forgiven = state.forgiven.min(state.dead);
        state.items.settle(late.index, SettledItem::Succeeded);
        state.succeeded = state.succeeded.saturating_add(1);
        state.outputs.extend(late.output.clone().map(|output| (late.index, output)));
        self.dead.remove(&item);
    }

    /// Items of the step may still run.
    pub(super) fn complete(&mut self, step: StepId) {
        self.close(step, StepStage::Completed);
        if let Some(state) = self.step_mut(step) {
            if let Some(reached) = &mut state.reached {
                // Redriven dead letters may have raised the count to the minimum.
                reached.success |= u64::from(state.succeeded) >= reached.min;
            }
            if state.is_busy() {
                self.open.left.insert(step);
            }
        }
    }

    /// Leaves a completed step when its last running item is settled.
    pub(super) fn forget_left_step(&mut self, step: StepId) {
        if !self.open.left.is_empty() && self.step(step).is_none_or(|state| !state.is_busy()) {
            self.open.left.remove(&step);
        }
    }

    /// The failure to report: that of a command beside the map, else an unmet completion rule, else the first
    /// dead letter.
    pub fn first_failure(&self) -> Option<JobFailure> {
        // A map below its minimum does not end the job; a failed command beside the map does.
        let mut steps = StepId::all().zip(&self.steps);
        let by_command = steps.any(|(step, state)| self.plan.is_one(step) && state.dead > 0);
        let shortfall = || self.shortfall();
        if by_command {
            self.failures.failure.clone().or_else(shortfall)
        } else {
            shortfall().or_else(|| self.failures.failure.clone())
        }
    }

    /// Set if a completion deadline passed before enough items had succeeded, and a redrive or late results
    /// have not changed that.
    fn shortfall(&self) -> Option<JobFailure> {
        let late = |(step, state): (StepId, &StepState)| {
            let reached = state.reached?;
            let short = reached.why == CompletionWhy::DeadlineExpired && !self.is_met(step, state);
            short.then_some(reached)
        };
        let reached = self.counted().find_map(late)?;
        let error =
            format!("{}: {} of {} had to succeed", reached.completion().reason, reached.min, reached.target);
        Some(JobFailure { reason: Reason::Deadline, error: StoredText::Itself(error) })
    }

    pub(crate) fn is_met(&self, step: StepId, state: &StepState) -> bool {
        match state.reached.filter(CompletionReached::is_best_effort) {
            Some(reached) => {
                let late = self.counts_late_results();
                reached.success || (late && u64::from(state.succeeded) >= reached.min)
            }
            None => state.dead == 0 || !self.plan.is_map(step),
        }
    }
}
