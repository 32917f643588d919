//! The state of one step.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use super::hold::Holds;
use super::item::{ItemState, SettledItem};
use super::items::Items;
use super::queue::RetryQueue;
use crate::event::{CompletionReached, codec};
use crate::id::StartId;

/// Encoding skips what a snapshot saves otherwise (items and holds) or derives from the items.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct StepState {
    #[n(0)]
    pub stage: StepStage,
    #[cbor(skip)]
    pub items: Items,
    /// Items that wait for a slot only are due at time zero.
    #[cbor(skip)]
    pub waiting: RetryQueue,
    #[cbor(skip)]
    pub held: Holds,
    #[cbor(skip)]
    pub running: u32,
    /// The next item in input order to start.
    #[n(1)]
    pub cursor: u32,
    /// Items after the cursor that were started before their turn.
    #[n(2)]
    pub ahead: BTreeSet<u32>,
    #[n(3)]
    pub succeeded: u32,
    #[n(4)]
    pub dead: u32,
    #[n(5)]
    pub skipped: u32,
    /// Items that the step was completed without.
    #[n(6)]
    pub missing: u32,
    #[cbor(n(7), with = "codec::time")]
    pub started: Timestamp,
    #[n(8)]
    pub reached: Option<CompletionReached>,
    /// Dead letters redriven after `reached`.
    #[n(9)]
    pub redriven: BTreeSet<u32>,
    /// Items that were settled after the step was completed, and are counted nevertheless.
    #[n(10)]
    pub late: BTreeSet<u32>,
    /// Results of a flow step's items, as JSON.
    #[n(11)]
    pub outputs: BTreeMap<u32, String>,
    /// The step has failed because no step can produce a required attribute any more.
    #[n(12)]
    pub unreachable: bool,
    /// How often the step was started again.
    #[n(13)]
    pub again: u32,
    /// Dead letters that no longer count as failures, because others were redriven later.
    #[n(14)]
    pub forgiven: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum StepStage {
    /// Steps that this one needs are not completed.
    #[default]
    #[n(0)]
    Waiting,
    /// The items are being read; by the command with this start number, if any.
    #[n(1)]
    Reading(#[n(0)] Option<StartId>),
    #[n(2)]
    Running,
    #[n(3)]
    Completed,
    #[n(4)]
    Failed,
    /// The condition of the step does not hold.
    #[n(5)]
    Skipped,
}

impl StepState {
    pub const fn settled(&self) -> u32 {
        self.succeeded.saturating_add(self.dead).saturating_add(self.skipped).saturating_add(self.missing)
    }

    /// Succeeded and dead items, without those that were settled late.
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

    /// Whether the step was completed without this item, so that its result is late.
    pub fn is_without(&self, item: u32) -> bool {
        self.reached.is_some() && !self.redriven.contains(&item)
    }

    pub fn pending(&self) -> u32 {
        let ahead = u32::try_from(self.ahead.len()).unwrap_or(u32::MAX);
        self.items.len().saturating_sub(self.cursor).saturating_sub(ahead)
    }
}
