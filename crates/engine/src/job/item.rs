//! The state of one item.
//!
//! A million items may wait for their retries at once. Each has a few numbers of its own; the standing
//! among its commands is equal for many, and they share it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde_json::Value;
use undaunted_policy::{FailureCause, Reason, RetryUsage, Timestamp};

use super::compact_option::CompactOption;
use super::snapshot;
use crate::event::{AttemptId, StoredText, codec};
use crate::id::{AttemptNumber, CommandId, ItemId, StartId};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ItemState<'i> {
    Pending,
    Active(&'i ActiveItem),
    Settled(SettledItem),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum SettledItem {
    #[n(0)]
    Succeeded,
    #[n(1)]
    Dead(
        #[n(0)]
        #[cbor(with = "codec::reason")]
        Reason,
    ),
    #[n(2)]
    Skipped(
        #[n(0)]
        #[cbor(with = "codec::reason")]
        Reason,
    ),
    /// Its step was complete without it.
    #[n(3)]
    Missing(
        #[n(0)]
        #[cbor(with = "codec::reason")]
        Reason,
    ),
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
    pub(super) standing: Arc<ItemPosition>,
}

/// Where an item stands among its commands. Items that failed alike share this until one of them moves on.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct ItemPosition {
    #[n(0)]
    pub command: CommandId,
    /// Of the current command.
    #[n(1)]
    pub attempts: u32,
    #[n(2)]
    pub(super) retries: u32,
    /// Counted from 1.
    #[n(3)]
    pub round: u32,
    /// Units of the job's pool it has used.
    #[n(4)]
    pub charged: u32,
    #[n(5)]
    #[cbor(with = "codec::maybe_cause", has_nil)]
    pub cause: Option<FailureCause>,
    #[n(6)]
    pub error: Option<StoredText>,
    /// Stopped commands whose handlers are not done; the innermost is the last.
    #[n(7)]
    pub frames: Vec<HandlerFrame>,
    #[n(8)]
    pub scope: Option<Box<ItemScope>>,
}

impl Deref for ActiveItem {
    type Target = ItemPosition;

    fn deref(&self) -> &ItemPosition {
        &self.standing
    }
}

impl DerefMut for ActiveItem {
    /// Copies a shared standing.
    fn deref_mut(&mut self) -> &mut ItemPosition {
        Arc::make_mut(&mut self.standing)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Running(StartId),
    /// Once due, it waits for a slot only.
    Waiting(Timestamp),
    Held,
    /// The attempt has ended, and the next events of the same decision say what follows.
    Undecided,
}

/// A stopped command, while its handler runs or after it has.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct HandlerFrame {
    #[n(0)]
    pub command: CommandId,
    #[n(1)]
    pub attempts: u32,
    #[n(2)]
    #[cbor(with = "snapshot::progress")]
    pub progress: RetryUsage,
    #[n(3)]
    pub rounds: u32,
    #[n(4)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    #[n(5)]
    pub error: StoredText,
}

/// What commands leave for later ones.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct ItemScope {
    #[n(0)]
    #[cbor(with = "snapshot::json_map")]
    pub captured: BTreeMap<String, Value>,
    /// Success and output.
    #[n(1)]
    pub outputs: BTreeMap<CommandId, (bool, String)>,
}

impl ActiveItem {
    pub(crate) fn new(command: CommandId, due: Timestamp) -> Self {
        let standing = ItemPosition { command, round: 1, ..ItemPosition::default() };
        Self {
            activity: Activity::Waiting(due),
            began: CompactOption::NONE,
            expires: CompactOption::NONE,
            spent: 0,
            previous: CompactOption::NONE,
            standing: Arc::new(standing),
        }
    }

    /// Its first start, moved by the time it was suspended.
    pub fn began(&self) -> Option<Timestamp> {
        self.began.time()
    }

    pub(crate) fn set_began(&mut self, began: Option<Timestamp>) {
        self.began = began.into();
    }

    /// When its retry is too late after unplanned downtime.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires.time()
    }

    pub(crate) fn set_expires(&mut self, expires: Option<Timestamp>) {
        self.expires = expires.into();
    }

    pub fn progress(&self) -> RetryUsage {
        RetryUsage {
            retries: self.standing.retries,
            spent: Duration::from_nanos(self.spent),
            previous: self.previous.span(),
        }
    }

    pub(crate) fn set_progress(&mut self, progress: RetryUsage) {
        self.spent = u64::try_from(progress.spent.as_nanos()).unwrap_or(u64::MAX);
        self.previous = progress.previous.into();
        if self.standing.retries != progress.retries {
            self.retries = progress.retries;
        }
    }

    pub(super) const fn standing(&self) -> &Arc<ItemPosition> {
        &self.standing
    }

    pub(super) fn stand(&mut self, standing: Arc<ItemPosition>) {
        self.standing = standing;
    }

    pub(crate) fn last_attempt(&self, item: ItemId) -> AttemptId {
        AttemptId::new(item, self.command, AttemptNumber(self.attempts))
    }

    /// The frame of the current command, if its handler has run and this is the extra attempt.
    pub fn repeated(&self) -> Option<&HandlerFrame> {
        self.frames.last().filter(|frame| frame.command == self.command)
    }

    pub(crate) fn turn_to(&mut self, command: CommandId) {
        self.command = command;
        self.attempts = 0;
        self.set_progress(RetryUsage::default());
        self.cause = None;
        self.error = None;
    }

    /// Due, and waits for a slot only.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        matches!(self.activity, Activity::Waiting(due) if due <= now)
    }
}
