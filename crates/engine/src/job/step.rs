//! The state of one step.

use std::collections::{BTreeMap, BTreeSet};

use undaunted_policy::{CompletionRule, Timestamp};

use super::hold::Holds;
use super::items::Items;
use super::queue::RetryQueue;
use crate::event::{CompletionReached, codec};
use crate::id::StartId;
use crate::stored::stored;

stored! {
    /// Encoding skips what a snapshot saves otherwise (items and holds) or derives from the items.
    #[derive(Clone, Debug, Default)]
    pub struct StepState {
        pub stage: StepStage = 0,
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
        pub cursor: u32 = 1,
        /// Items after the cursor that were started before their turn.
        pub ahead: BTreeSet<u32> = 2,
        /// Items whose first attempt is reserved, and has not begun.
        #[cbor(skip)]
        pub reserved: BTreeSet<u32>,
        pub succeeded: u32 = 3,
        pub dead: u32 = 4,
        pub skipped: u32 = 5,
        /// Items that the step was completed without.
        pub missing: u32 = 6,
        pub started: Timestamp = 7 with "codec::time",
        pub reached: Option<CompletionReached> = 8,
        /// Dead letters redriven after `reached`.
        pub redriven: BTreeSet<u32> = 9,
        /// Items that were settled after the step was completed, and are counted nevertheless.
        pub late: BTreeSet<u32> = 10,
        /// Results of a flow step's items, as JSON.
        pub outputs: BTreeMap<u32, String> = 11,
        /// The step has failed because no step can produce a required attribute any more.
        pub unreachable: bool = 12,
        /// How often the step was started again.
        pub again: u32 = 13,
        /// Dead letters that no longer count as failures, because others were redriven later.
        pub forgiven: u32 = 14,
        /// Items that have not succeeded and whose result is known, so that a repeated one is not a late one.
        pub heard: BTreeSet<u32> = 15,
        /// The deadline of the completion rule, if it had passed when the settings were changed.
        pub passed: Option<Timestamp> = 16 with "codec::maybe_time" has_nil,
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum StepStage {
        /// Steps that this one needs are not completed.
        #[default]
        Waiting = 0,
        /// The items are being read; by the command with this start number, if any.
        Reading(Option<StartId> = 0) = 1,
        Running = 2,
        Completed = 3,
        Failed = 4,
        /// The condition of the step does not hold.
        Skipped = 5,
    }
}

impl StepState {
    pub const fn settled(&self) -> u32 {
        self.succeeded.saturating_add(self.dead).saturating_add(self.skipped).saturating_add(self.missing)
    }

    /// When the completion rule stops waiting.
    pub fn deadline(&self, rule: &CompletionRule) -> Timestamp {
        self.passed.unwrap_or_else(|| self.started.after(rule.deadline))
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
