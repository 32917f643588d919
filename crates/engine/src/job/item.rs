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
use undaunted_policy::{Cause, Progress, Reason, Timestamp};

use super::maybe::Maybe;
use super::saved;
use crate::event::{AttemptId, Text, codec};
use crate::id::{AttemptNumber, CommandId, ItemId, StartId};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'i> {
    Pending,
    Active(&'i Active),
    Settled(Settled),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Settled {
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

/// An item that was started and is not settled. Dereferences to its [`Standing`].
#[derive(Clone, Debug, PartialEq)]
pub struct Active {
    pub doing: Doing,
    pub(super) began: Maybe,
    pub(super) expires: Maybe,
    /// Sum of its delays in nanoseconds; `previous` is the last one.
    pub(super) spent: u64,
    pub(super) previous: Maybe,
    pub(super) standing: Arc<Standing>,
}

/// Where an item stands among its commands. Items that failed alike share this until one of them moves on.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Standing {
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
    pub cause: Option<Cause>,
    #[n(6)]
    pub error: Option<Text>,
    /// Stopped commands whose handlers are not done; the innermost is the last.
    #[n(7)]
    pub frames: Vec<Frame>,
    #[n(8)]
    pub scope: Option<Box<Scope>>,
}

impl Deref for Active {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        &self.standing
    }
}

impl DerefMut for Active {
    /// Copies a shared standing.
    fn deref_mut(&mut self) -> &mut Standing {
        Arc::make_mut(&mut self.standing)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Running(StartId),
    /// Once due, it waits for a slot only.
    Waiting(Timestamp),
    Held,
    /// The attempt has ended, and the next events of the same decision say what follows.
    Undecided,
}

/// A stopped command, while its handler runs or after it has.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Frame {
    #[n(0)]
    pub command: CommandId,
    #[n(1)]
    pub attempts: u32,
    #[n(2)]
    #[cbor(with = "saved::progress")]
    pub progress: Progress,
    #[n(3)]
    pub rounds: u32,
    #[n(4)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    #[n(5)]
    pub error: Text,
}

/// What commands leave for later ones.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Scope {
    #[n(0)]
    #[cbor(with = "saved::json_map")]
    pub captured: BTreeMap<String, Value>,
    /// Success and output.
    #[n(1)]
    pub outputs: BTreeMap<CommandId, (bool, String)>,
}

impl Active {
    pub(crate) fn new(command: CommandId, due: Timestamp) -> Self {
        let standing = Standing { command, round: 1, ..Standing::default() };
        Self {
            doing: Doing::Waiting(due),
            began: Maybe::NONE,
            expires: Maybe::NONE,
            spent: 0,
            previous: Maybe::NONE,
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

    pub fn progress(&self) -> Progress {
        Progress {
            retries: self.standing.retries,
            spent: Duration::from_nanos(self.spent),
            previous: self.previous.span(),
        }
    }

    pub(crate) fn set_progress(&mut self, progress: Progress) {
        self.spent = u64::try_from(progress.spent.as_nanos()).unwrap_or(u64::MAX);
        self.previous = progress.previous.into();
        if self.standing.retries != progress.retries {
            self.retries = progress.retries;
        }
    }

    pub(super) const fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    pub(super) fn stand(&mut self, standing: Arc<Standing>) {
        self.standing = standing;
    }

    pub(crate) fn last_attempt(&self, item: ItemId) -> AttemptId {
        AttemptId::new(item, self.command, AttemptNumber(self.attempts))
    }

    /// The frame of the current command, if its handler has run and this is the extra attempt.
    pub fn repeated(&self) -> Option<&Frame> {
        self.frames.last().filter(|frame| frame.command == self.command)
    }

    pub(crate) fn turn_to(&mut self, command: CommandId) {
        self.command = command;
        self.attempts = 0;
        self.set_progress(Progress::default());
        self.cause = None;
        self.error = None;
    }

    /// Due, and waits for a slot only.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        matches!(self.doing, Doing::Waiting(due) if due <= now)
    }
}
