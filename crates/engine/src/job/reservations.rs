//! Reserved starts: first attempts that are on record before a slot is free for them.
//!
//! The keeper begins a reserved start the moment a slot is free, without waiting for a commit. Only then has the
//! attempt started; until then its item counts as one whose turn has not come. One that did not begin is withdrawn,
//! and nothing was used up.

use std::time::Duration;

use undaunted_policy::{Timestamp, Tolerance};

use super::state::{Job, JobStage};
use super::step::StepState;
use crate::event::StartReserved;
use crate::id::{ItemId, StartId, StepId};
use crate::plan::Successor;
use crate::workflow::{Command, OnInterrupt, OnItemFailure};

/// Nothing stays reserved while a retry falls due within this time.
const BEFORE_RETRY: Duration = Duration::from_millis(5);
/// Nothing is reserved while a retry falls due within this time: it would be withdrawn again.
const NOT_BEFORE_RETRY: Duration = Duration::from_millis(100);
/// More bring nothing, and each retry withdraws all of them.
const MOST: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedStart {
    pub item: ItemId,
    pub at: Timestamp,
}

impl Job {
    /// Whether only a free slot decides when first attempts of a step begin, so that they may be reserved. An attempt
    /// that may not be repeated is not: after a power failure its reservation counts as an attempt.
    fn allows_reservations(&self, step: StepId) -> bool {
        let Some(map) = self.plan.map(step) else { return false };
        let first = self.plan.first(step);
        let ends_item = first.is_some_and(|first| self.plan.after_success(first) == Successor::Item);
        let command = first.and_then(|first| self.plan.command(first));
        ends_item
            && command.is_some_and(may_be_reserved)
            && map.tolerance == Tolerance::default()
            && map.on_item_failure != OnItemFailure::Stop
            && !map.completion.best_effort
            && self.pool.is_none()
            && self.starts.pace.is_none()
            && self.workflow().flow.is_none()
            && self.deadline().is_none()
    }

    /// The items whose first attempts may be reserved now: one for each slot, once all slots are taken.
    pub fn reservable(&self, now: Timestamp) -> Vec<ItemId> {
        if !self.keeps_reservations(now) || self.is_retry_due_by(now.after(NOT_BEFORE_RETRY)) {
            return Vec::new();
        }
        let steps = self.busy_steps().filter(|(step, _)| self.allows_reservations(*step));
        let items = steps.flat_map(|(step, state)| {
            let slots = self.parallel(step);
            let on_record = slots.saturating_add(slots.min(MOST));
            let room = on_record.saturating_sub(state.running_or_reserved());
            let room = if self.free_slots(step, state) > 0 { 0 } else { room };
            state
                .unstarted()
                .take(usize::try_from(room).unwrap_or(usize::MAX))
                .map(move |item| step.item(item))
        });
        items.collect()
    }

    /// Whether reserved starts may wait for a slot: what is due goes first, and a job that is to stop starts nothing.
    pub fn keeps_reservations(&self, now: Timestamp) -> bool {
        self.stage == JobStage::Running
            && self.times.paused.is_none()
            && !self.is_retry_due_by(now.after(BEFORE_RETRY))
    }

    fn is_retry_due_by(&self, time: Timestamp) -> bool {
        self.busy_steps().any(|(_, state)| state.waiting.due_by(time).next().is_some())
    }

    /// When reserved starts have to make way for a retry.
    pub(crate) fn reservations_end(&self) -> Option<Timestamp> {
        let reserving = self.busy_steps().filter(|(_, state)| !state.reserved.is_empty());
        let first = reserving.filter_map(|(_, state)| state.waiting.iter().next());
        let early = |due: Timestamp| {
            let before = u64::try_from(BEFORE_RETRY.as_nanos()).unwrap_or(u64::MAX);
            Timestamp::from_nanos(due.as_nanos().saturating_sub(before))
        };
        first.map(|(due, _)| early(due)).min()
    }

    pub fn free_slots(&self, step: StepId, state: &StepState) -> u32 {
        self.parallel(step).saturating_sub(state.running_or_reserved())
    }

    pub(super) fn reserve(&mut self, reserved: &StartReserved, at: Timestamp) {
        self.starts.use_up(reserved.start);
        let item = reserved.of.item();
        if let Some(state) = self.step_mut(item.step) {
            state.reserved.insert(item.index);
            self.starts.reserved.insert(reserved.start, ReservedStart { item, at });
        }
    }

    pub(super) fn withdraw(&mut self, start: StartId) {
        if let Some(ReservedStart { item, .. }) = self.starts.reserved.remove(&start)
            && let Some(state) = self.step_mut(item.step)
        {
            state.reserved.remove(&item.index);
        }
    }
}

impl StepState {
    pub fn running_or_reserved(&self) -> u32 {
        let reserved = u32::try_from(self.reserved.len()).unwrap_or(u32::MAX);
        self.running.saturating_add(reserved)
    }

    /// The items whose turn has not come, in input order.
    pub fn unstarted(&self) -> impl Iterator<Item = u32> {
        let items = self.cursor..self.items.len();
        let items = items.filter(|item| !self.ahead.contains(item) && !self.reserved.contains(item));
        items.filter(|_| self.reached.is_none())
    }
}

fn may_be_reserved(command: &Command) -> bool {
    command.action.is_program()
        && command.on_failure.is_none()
        && command.breaker.is_none()
        && command.on_interrupt != OnInterrupt::Stop
        && command.retry.policy.bound().retries() != Some(0)
}
