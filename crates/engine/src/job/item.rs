//! The state of one item.
//!
//! A million items may wait for their retries at once. What each of them has for itself is a few
//! numbers; where it stands among its commands is the same for many, and they share it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use minicbor::{Decode, Encode};
use serde_json::Value;
use undaunted_policy::{Cause, Progress, Reason, Timestamp};

use super::maybe::Maybe;
use super::saved;
use crate::event::{Text, codec};
use crate::id::CommandId;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'i> {
    /// It was never started.
    Pending,
    /// It was started and is not settled.
    Active(&'i Active),
    /// Nothing more happens to it.
    Settled(Settled),
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Settled {
    #[n(0)]
    Succeeded,
    /// It failed for good.
    #[n(1)]
    Dead(
        #[n(0)]
        #[cbor(with = "codec::reason")]
        Reason,
    ),
    /// It is not gone on with.
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

/// An item that was started and is not settled.
///
/// Where it stands is read and changed as if it were part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Active {
    pub doing: Doing,
    pub(super) began: Maybe,
    pub(super) expires: Maybe,
    /// The sum of its delays, and the last of them, in nanoseconds.
    pub(super) spent: u64,
    pub(super) previous: Maybe,
    pub(super) standing: Arc<Standing>,
}

/// Where an item stands among its commands. Items that failed alike stand alike, and share this until
/// one of them goes on.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Standing {
    #[n(0)]
    pub command: CommandId,
    /// Attempts of that command so far.
    #[n(1)]
    pub attempts: u32,
    /// Retries of it that were scheduled so far.
    #[n(2)]
    pub(super) retries: u32,
    /// The round, counted from 1.
    #[n(3)]
    pub round: u32,
    /// Units of the job's pool it has used.
    #[n(4)]
    pub charged: u32,
    /// How the last attempt of the command failed.
    #[n(5)]
    #[cbor(with = "codec::maybe_cause", has_nil)]
    pub cause: Option<Cause>,
    /// What it said when it failed.
    #[n(6)]
    pub error: Option<Text>,
    /// Commands that have stopped and whose handlers are not done with; the innermost is the last.
    #[n(7)]
    pub frames: Vec<Frame>,
    /// What its commands have left for later ones.
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
    /// Whoever changes where it stands stands alone from then on.
    fn deref_mut(&mut self) -> &mut Standing {
        Arc::make_mut(&mut self.standing)
    }
}

/// What an active item is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// An attempt runs: the number of its start.
    Running(u64),
    /// It waits; for a slot only, if the instant has passed.
    Waiting(Timestamp),
    /// A breaker keeps it back.
    Held,
    /// Its attempt has ended, and the next events of the same decision say what follows.
    Undecided,
}

/// A command that has stopped, while its handler runs or after it has.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Frame {
    #[n(0)]
    pub command: CommandId,
    #[n(1)]
    pub attempts: u32,
    /// What they had used up.
    #[n(2)]
    #[cbor(with = "saved::progress")]
    pub progress: Progress,
    /// How often its handler was started.
    #[n(3)]
    pub rounds: u32,
    #[n(4)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    /// What people read about it.
    #[n(5)]
    pub error: Text,
}

/// What commands leave for later ones.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Scope {
    /// Captured values, by name.
    #[n(0)]
    #[cbor(with = "saved::json_map")]
    pub captured: BTreeMap<String, Value>,
    /// What became of commands and what they wrote, by the number of the command.
    #[n(1)]
    pub outputs: BTreeMap<CommandId, (bool, String)>,
}

impl Active {
    pub(crate) fn new(command: CommandId, due: Timestamp) -> Self {
        let standing = Standing {
            command,
            attempts: 0,
            retries: 0,
            round: 1,
            charged: 0,
            cause: None,
            error: None,
            frames: Vec::new(),
            scope: None,
        };
        Self {
            doing: Doing::Waiting(due),
            began: Maybe::NONE,
            expires: Maybe::NONE,
            spent: 0,
            previous: Maybe::NONE,
            standing: Arc::new(standing),
        }
    }

    /// When its time began to run: its first start, moved by the time it was suspended. None while it
    /// has not started.
    pub fn began(&self) -> Option<Timestamp> {
        self.began.time()
    }

    pub(crate) fn set_began(&mut self, began: Option<Timestamp>) {
        self.began = began.into();
    }

    /// When its retry is too late to be made after unplanned downtime, if there is such a time.
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires.time()
    }

    pub(crate) fn set_expires(&mut self, expires: Option<Timestamp>) {
        self.expires = expires.into();
    }

    /// What its attempts have used up.
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

    /// The same, shared with others that stand there.
    pub(super) fn stand(&mut self, standing: Arc<Standing>) {
        self.standing = standing;
    }

    /// The frame of the command it is at, if its handler has run and it is tried once more.
    pub fn repeated(&self) -> Option<&Frame> {
        self.frames
            .last()
            .filter(|frame| frame.command == self.command)
    }

    /// Turns to a command that was not tried before.
    pub(crate) fn turn_to(&mut self, command: CommandId) {
        self.command = command;
        self.attempts = 0;
        self.set_progress(Progress::default());
        self.cause = None;
        self.error = None;
    }

    /// Whether it is due and waits for a slot only.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        matches!(self.doing, Doing::Waiting(due) if due <= now)
    }
}
