//! Dead letters: kept, redriven or dropped.

use std::time::Duration;

use undaunted_policy::{Reason, Timestamp};

use super::item::{Activity, ItemState, SettledItem};
use super::state::{Job, JobStage};
use super::step::{StepStage, StepState};
use crate::event::AttemptId;
use crate::id::{ItemId, StepId};
use crate::workflow::StepPhase;

impl Job {
    /// Keeps the state of an item before it becomes a dead letter, for a redrive.
    pub(super) fn keep_dead_letter(&mut self, of: AttemptId) {
        if let Some(active) = self.active(of.item()) {
            let mut kept = Box::new(active.clone());
            kept.command = of.command;
            // If a handler failed too, keep the numbers of the command that it handled.
            let frames = active.frames.iter();
            if let Some(frame) = frames.rev().find(|frame| frame.command == of.command) {
                kept.attempts = frame.attempts;
                kept.set_progress(frame.progress);
                kept.cause = None;
                kept.limit = None;
                kept.error = Some(frame.error.clone());
            }
            kept.frames.clear();
            self.dead.insert(of.item(), kept);
        }
    }

    pub(super) fn reopen(&mut self, reduce: bool) {
        self.stage = JobStage::Running;
        self.failures.stopped = None;
        self.failures.failure = None;
        let phases: Vec<_> = self.workflow().steps.iter().map(|it| it.phase).collect();
        // Steps that start again lose their items, and their dead letters with them.
        let is_again = |step: StepId| reduce && phases.get(step.position()) == Some(&StepPhase::Reduce);
        self.dead.retain(|item, _| !is_again(item.step));
        for (step, phase) in self.steps.iter_mut().zip(phases) {
            if reduce && phase == StepPhase::Reduce {
                *step = StepState { again: step.again.saturating_add(1), ..StepState::default() };
            } else if step.stage == StepStage::Failed {
                // A flow step that never had items starts again.
                step.stage = if step.unreachable || (phase == StepPhase::Flow && step.items.is_empty()) {
                    StepStage::Waiting
                } else {
                    StepStage::Running
                };
                step.unreachable = false;
            }
        }
        self.find_open_steps();
    }

    pub(super) fn redrive(&mut self, item: ItemId) {
        let Some(mut active) = self.dead.remove(&item) else { return };
        active.begin_round();
        active.set_began(None);
        active.set_expires(None);
        active.activity = Activity::Waiting(Timestamp::ZERO);
        let is_call = self.plan().call(item.step).is_some();
        let Some(state) = self.step_mut(item.step) else { return };
        if is_call {
            state.restart_dropped();
        }
        state.stage = StepStage::Running;
        state.heard.remove(&item.index);
        match state.reached {
            Some(reached) if reached.is_best_effort() => {
                state.redriven.insert(item.index);
            }
            // The step is complete again when all items have reported again.
            Some(_) => state.reached = None,
            None => {}
        }
        state.dead = state.dead.saturating_sub(1);
        // Dead letters that were not redriven were tolerated; only new ones count.
        state.forgiven = state.dead;
        state.waiting.insert(Timestamp::ZERO, item.index);
        state.items.begin(item.index, *active);
        if !self.open.steps.contains(&item.step) {
            self.find_open_steps();
        }
    }

    pub fn first_dead(&self) -> Option<Reason> {
        let (&item, _) = self.dead.first_key_value()?;
        let ItemState::Settled(SettledItem::Dead(reason)) = self.item(item)? else { return None };
        Some(reason)
    }

    pub(super) fn forget(&mut self, item: ItemId) {
        if self.dead.remove(&item).is_none() {
            return;
        }
        if let Some(state) = self.step_mut(item.step)
            && item.index < state.items.len()
        {
            let dropped = SettledItem::Skipped(Reason::NotSelected);
            state.items.settle(item.index, dropped);
            state.dead = state.dead.saturating_sub(1);
            state.forgiven = state.forgiven.min(state.dead);
            state.skipped = state.skipped.saturating_add(1);
        }
    }

    /// The clocks of all items stood still during the pause.
    pub(super) fn unpause(&mut self, away: Duration, now: Timestamp) {
        let since = self.times.paused.take().unwrap_or(now);
        let now = if self.stage == JobStage::Suspended { self.times.run_until } else { now };
        for step in &mut self.steps {
            step.unpause(away, since, now);
        }
    }
}

impl StepState {
    /// Starts the items of a flow step that were skipped because another one failed, in a new round.
    fn restart_dropped(&mut self) {
        let dropped = |item: &ItemState<'_>| {
            matches!(item, ItemState::Settled(SettledItem::Skipped(Reason::Tolerance)))
        };
        let items = self.items.iter().filter(|(_, item)| dropped(item));
        let items: Vec<u32> = items.map(|(item, _)| item).collect();
        let Some(first) = items.first().copied() else { return };
        for item in &items {
            self.items.put_back(*item);
        }
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
        self.skipped = self.skipped.saturating_sub(count);
        self.again = self.again.saturating_add(1);
        self.cursor = self.cursor.min(first);
        let begun = self.items.iter();
        let begun = begun.filter(|(item, state)| *item >= first && *state != ItemState::Pending);
        self.ahead = begun.map(|(item, _)| item).collect();
    }
}
