//! The state of one step.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use super::hold::Holds;
use super::item::{ItemState, SettledItem};
use super::items::Items;
use super::queue::RetryQueue;
use crate::event::CompletionReached;
use crate::id::StartId;

#[derive(Clone, Debug, Default)]
pub struct StepState {
    pub stage: StepStage,
    pub items: Items,
    /// Items that wait for a slot only are due at time zero.
    pub waiting: RetryQueue,
    pub held: Holds,
    pub running: u32,
    pub cursor: u32,
    /// Items after the cursor that were begun before their turn.
    pub ahead: BTreeSet<u32>,
    pub succeeded: u32,
    pub dead: u32,
    pub skipped: u32,
    /// Items it was complete without.
    pub missing: u32,
    pub started: Timestamp,
    pub reached: Option<CompletionReached>,
    /// Dead letters redriven after `reached`.
    pub redriven: BTreeSet<u32>,
    /// Items that ended after it was complete, and count all the same.
    pub late: BTreeSet<u32>,
    /// Results of a flow step's items, as JSON.
    pub outputs: BTreeMap<u32, String>,
    /// Failed because something it requires can no longer come.
    pub unreachable: bool,
    /// How often it was begun again.
    pub again: u32,
    /// Dead letters that no longer count as failures, because others were redriven later.
    pub forgiven: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum StepStage {
    /// Steps it needs are not complete.
    #[default]
    #[n(0)]
    Waiting,
    /// Its items are being read; by the command with this start number, if any.
    #[n(1)]
    Reading(#[n(0)] Option<StartId>),
    #[n(2)]
    Running,
    #[n(3)]
    Completed,
    #[n(4)]
    Failed,
    /// Its condition does not hold.
    #[n(5)]
    Skipped,
}

impl StepState {
    pub const fn settled(&self) -> u32 {
        self.succeeded.saturating_add(self.dead).saturating_add(self.skipped).saturating_add(self.missing)
    }

    /// Succeeded and dead items, without those that came late.
    pub fn counted(&self) -> (u32, u32) {
        let (mut succeeded, mut dead) = (self.succeeded, self.dead);
        for item in &self.late {
            match self.items.get(*item) {
                Some(ItemState::Settled(SettledItem::Succeeded)) => succeeded = succeeded.saturating_sub(1),
                Some(ItemState::Settled(SettledItem::Dead(_))) => dead = dead.saturating_sub(1),
                Some(ItemState::Pending | ItemState::Active(_) | ItemState::Settled(_)) | None => {}
            }
        }
        (succeeded, dead)
    }

    pub fn is_busy(&self) -> bool {
        self.running > 0 || !self.waiting.is_empty() || !self.held.is_empty()
    }

    /// Whether it was complete without this item, so that the result comes late.
    pub fn is_without(&self, item: u32) -> bool {
        self.reached.is_some() && !self.redriven.contains(&item)
    }

    pub fn pending(&self) -> u32 {
        let ahead = u32::try_from(self.ahead.len()).unwrap_or(u32::MAX);
        let behind = self.items.len().saturating_sub(self.cursor);
        behind.saturating_sub(ahead)
    }
}
