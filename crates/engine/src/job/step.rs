//! The state of one step.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use super::hold::Holds;
use super::item::{Item, Settled};
use super::items::Items;
use super::queue::Queue;
use crate::event::Reached;

#[derive(Clone, Debug, Default)]
pub struct StepState {
    /// How far it has come.
    pub stage: StepStage,
    pub items: Items,
    /// Items that wait, the one that is due first at the front. Those that wait for a slot only are
    /// due at the beginning of time.
    pub waiting: Queue,
    /// Items that breakers hold.
    pub held: Holds,
    /// How many attempts run.
    pub running: u32,
    /// The first item that was never started.
    pub cursor: u32,
    /// Items behind the cursor that were begun before their turn.
    pub ahead: BTreeSet<u32>,
    pub succeeded: u32,
    /// Items that are dead letters.
    pub dead: u32,
    /// Items that were skipped.
    pub skipped: u32,
    /// Items it was complete without.
    pub missing: u32,
    pub started: Timestamp,
    /// What its completion rule has decided.
    pub reached: Option<Reached>,
    /// Dead letters of it that were tried again after that.
    pub redriven: BTreeSet<u32>,
    /// Items that came to their end after it was complete, and count all the same.
    pub late: BTreeSet<u32>,
    /// What the items of a step of a flow gave, as JSON.
    pub outputs: BTreeMap<u32, String>,
    /// Whether it has failed because something it requires can no longer come.
    pub unreachable: bool,
    /// How often it was begun again.
    pub again: u32,
    /// Dead letters that no longer count as failures, because others were tried again after them.
    pub forgiven: u32,
}

/// How far a step has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum StepStage {
    /// Steps it needs are not complete.
    #[default]
    #[n(0)]
    Waiting,
    /// Its items are being read; by a command, if there is the number of a start.
    #[n(1)]
    Reading(#[n(0)] Option<u64>),
    /// Its items are worked on.
    #[n(2)]
    Running,
    /// All its items are settled.
    #[n(3)]
    Completed,
    #[n(4)]
    Failed,
    /// Its condition does not hold.
    #[n(5)]
    Skipped,
}

impl StepState {
    /// Items to which nothing more happens.
    pub const fn settled(&self) -> u32 {
        self.succeeded
            .saturating_add(self.dead)
            .saturating_add(self.skipped)
            .saturating_add(self.missing)
    }

    /// How many items have succeeded, and how many are dead letters, those left out that came late.
    pub fn counted(&self) -> (u32, u32) {
        let (mut succeeded, mut dead) = (self.succeeded, self.dead);
        for item in &self.late {
            match self.items.get(*item) {
                Some(Item::Settled(Settled::Succeeded)) => succeeded = succeeded.saturating_sub(1),
                Some(Item::Settled(Settled::Dead(_))) => dead = dead.saturating_sub(1),
                Some(Item::Pending | Item::Active(_) | Item::Settled(_)) | None => {}
            }
        }
        (succeeded, dead)
    }

    /// Whether an item of it runs, waits or is held.
    pub fn is_busy(&self) -> bool {
        self.running > 0 || !self.waiting.is_empty() || !self.held.is_empty()
    }

    /// Whether it was complete without an item, so that what comes of it comes late.
    pub fn is_without(&self, item: u32) -> bool {
        self.reached.is_some() && !self.redriven.contains(&item)
    }

    /// Items that were never started.
    pub fn pending(&self) -> u32 {
        let ahead = u32::try_from(self.ahead.len()).unwrap_or(u32::MAX);
        let behind = self.items.len().saturating_sub(self.cursor);
        behind.saturating_sub(ahead)
    }
}
