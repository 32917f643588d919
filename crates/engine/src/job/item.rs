//! The state of one item.
//!
//! A million items may wait for their retries at once. Each has a few numbers of its own; its position among
//! its commands is equal for many items, which share it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::{FailureCause, Reason, RetryProgress, Timestamp};

use super::compact_option::CompactOption;
use super::snapshot;
use crate::event::{AttemptId, StoredText, TimeLimit, codec};
use crate::id::{AttemptNumber, CommandId, ItemId, StartId};
use crate::stored::stored;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ItemState<'i> {
    Pending,
    Active(&'i ActiveItem),
    Settled(SettledItem),
}

stored! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SettledItem {
        Succeeded = 0,
        Dead(Reason = 0 with "codec::reason") = 1,
        Skipped(Reason = 0 with "codec::reason") = 2,
        /// The step was completed without this item.
        Missing(Reason = 0 with "codec::reason") = 3,
    }
}

/// An item that was started and is not settled. Dereferences to its [`ItemPosition`].
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveItem {
    pub activity: Activity,
    pub(super) began: CompactOption,
    pub(super) expires: CompactOption,
    /// Sum of its delays in nanoseconds; `previous` is the last one.
    pub(super) spent: u64,
    pub(super) previous: CompactOption,
    pub(super) position: Arc<ItemPosition>,
}

stored! {
    /// Where an item is among its commands. Items that failed alike share one position until they differ.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ItemPosition {
        pub command: CommandId = 0,
        /// Attempts of the current command.
        pub attempts: u32 = 1,
        pub(super) retries: u32 = 2,
        /// Counted from 1.
        pub round: u32 = 3,
        /// Units of the job's pool that the item has used.
        pub charged: u32 = 4,
        pub cause: Option<FailureCause> = 5 with "codec::maybe_cause" has_nil,
        pub error: Option<StoredText> = 6,
        /// Stopped commands whose handlers are not done; the innermost is the last.
        pub frames: Vec<HandlerFrame> = 7,
        pub scope: Option<Box<ItemScope>> = 8,
        /// The time limit that ended the last attempt.
        pub limit: Option<TimeLimit> = 9,
    }
}

impl Deref for ActiveItem {
    type Target = ItemPosition;

    fn deref(&self) -> &ItemPosition {
        &self.position
    }
}

impl DerefMut for ActiveItem {
    /// Copies a shared position.
    fn deref_mut(&mut self) -> &mut ItemPosition {
        Arc::make_mut(&mut self.position)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Running(StartId),
    /// Once due, the item waits for a slot only.
    Waiting(Timestamp),
    Held,
    /// The attempt has ended; a later event of the same decision sets the next activity.
    Undecided,
}

stored! {
    /// A stopped command, while its handler runs or after it has.
    #[derive(Clone, Debug, PartialEq)]
    pub struct HandlerFrame {
        pub command: CommandId = 0,
        pub attempts: u32 = 1,
        pub progress: RetryProgress = 2 with "snapshot::progress",
        pub rounds: u32 = 3,
        pub reason: Reason = 4 with "codec::reason",
        pub error: StoredText = 5,
        /// The attempts that the commands of the handler have made in all its rounds.
        pub(super) handled: Option<BTreeMap<CommandId, u32>> = 6,
    }

    /// Values that commands leave for later commands.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ItemScope {
        pub captured: BTreeMap<String, Value> = 0 with "snapshot::json_map",
        /// Success and output.
        pub outputs: BTreeMap<CommandId, (bool, String)> = 1,
    }
}

impl ActiveItem {
    pub(crate) fn new(command: CommandId, due: Timestamp) -> Self {
        Self::at(Arc::new(ItemPosition { command, round: 1, ..ItemPosition::default() }), due)
    }

    pub(super) const fn at(position: Arc<ItemPosition>, due: Timestamp) -> Self {
        Self {
            activity: Activity::Waiting(due),
            began: CompactOption::NONE,
            expires: CompactOption::NONE,
            spent: 0,
            previous: CompactOption::NONE,
            position,
        }
    }

    /// The first start of the item, moved by the time its job was suspended.
    pub fn began(&self) -> Option<Timestamp> {
        self.began.time()
    }

    pub(crate) fn set_began(&mut self, began: Option<Timestamp>) {
        self.began = began.into();
    }

    /// After unplanned downtime, when the waiting retry is too late.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires.time()
    }

    pub(crate) fn set_expires(&mut self, expires: Option<Timestamp>) {
        self.expires = expires.into();
    }

    pub fn progress(&self) -> RetryProgress {
        RetryProgress {
            retries: self.position.retries,
            spent: Duration::from_nanos(self.spent),
            previous: self.previous.span(),
        }
    }

    pub(crate) fn set_progress(&mut self, progress: RetryProgress) {
        self.spent = u64::try_from(progress.spent.as_nanos()).unwrap_or(u64::MAX);
        self.previous = progress.previous.into();
        if self.position.retries != progress.retries {
            self.retries = progress.retries;
        }
    }

    pub(crate) fn last_attempt(&self, item: ItemId) -> AttemptId {
        AttemptId::new(item, self.command, AttemptNumber(self.attempts))
    }

    /// The frame of the current command, if its handler has run and this is the extra attempt.
    pub fn repeated(&self) -> Option<&HandlerFrame> {
        self.frames.last().filter(|frame| frame.command == self.command)
    }

    /// Attempts are numbered from 1, those of a handler over all its rounds.
    pub(crate) fn turn_to(&mut self, command: CommandId) {
        let mut handled = self.frames.iter().rev().filter_map(|frame| frame.handled.as_ref());
        let before = handled.find_map(|handled| handled.get(&command)).copied();
        self.command = command;
        self.attempts = before.unwrap_or_default();
        self.set_progress(RetryProgress::default());
        self.cause = None;
        self.limit = None;
        self.error = None;
    }

    /// Begins a new round of the current command. The last error of the previous one stays until an attempt ends.
    pub(crate) fn begin_round(&mut self) {
        let (cause, limit, error) = (self.cause, self.limit, self.error.take());
        self.round = self.round.saturating_add(1);
        self.turn_to(self.command);
        (self.cause, self.limit, self.error) = (cause, limit, error);
    }

    /// Whether an attempt was made, in this round or an earlier one.
    pub(crate) fn was_tried(&self) -> bool {
        self.began().is_some() || self.attempts > 0 || self.error.is_some() || self.cause.is_some()
    }

    /// Due, and waits for a slot only.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        matches!(self.activity, Activity::Waiting(due) if due <= now)
    }
}
