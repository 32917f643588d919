//! The state of one item.
//!
//! A million items may wait for their retries at once. What each of them has for itself is a few
//! numbers; where it stands among its commands is the same for many, and they share it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::{Cause, Progress, Reason, Timestamp};

use super::maybe::Maybe;
use crate::event::Text;

/// An item.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It is done.
    Succeeded,
    /// It failed for good.
    Dead(Reason),
    /// It is not gone on with.
    Skipped(Reason),
    /// Its step was complete without it.
    Missing(Reason),
}

/// An item that was started and is not settled.
///
/// Where it stands is read and changed as if it were part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Active {
    /// What happens now.
    pub doing: Doing,
    began: Maybe,
    expires: Maybe,
    /// The sum of its delays, and the last of them, in nanoseconds.
    spent: u64,
    previous: Maybe,
    standing: Arc<Standing>,
}

/// Where an item stands among its commands. Items that failed alike stand alike, and share this until
/// one of them goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The command it is at.
    pub command: u32,
    /// Attempts of that command so far.
    pub attempts: u32,
    /// Retries of it that were scheduled so far.
    pub(super) retries: u32,
    /// The round, counted from 1.
    pub round: u32,
    /// Units of the job's pool it has used.
    pub charged: u32,
    /// How the last attempt of the command failed.
    pub cause: Option<Cause>,
    /// What it said when it failed.
    pub error: Option<Text>,
    /// Commands that have stopped and whose handlers are not done with; the innermost is the last.
    pub frames: Vec<Frame>,
    /// What its commands have left for later ones.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The command.
    pub command: u32,
    /// Its attempts.
    pub attempts: u32,
    /// What they had used up.
    pub progress: Progress,
    /// How often its handler was started.
    pub rounds: u32,
    /// Why it stopped.
    pub reason: Reason,
    /// What people read about it.
    pub error: Text,
}

/// What commands leave for later ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Captured values, by name.
    pub captured: BTreeMap<String, Value>,
    /// What became of commands and what they wrote, by the number of the command.
    pub outputs: BTreeMap<u32, (bool, String)>,
}

impl Active {
    pub(crate) fn new(command: u32, due: Timestamp) -> Self {
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
    #[must_use]
    pub fn began(&self) -> Option<Timestamp> {
        self.began.time()
    }

    pub(crate) fn set_began(&mut self, began: Option<Timestamp>) {
        self.began = began.into();
    }

    /// When its retry is too late to be made after unplanned downtime, if there is such a time.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.expires.time()
    }

    pub(crate) fn set_expires(&mut self, expires: Option<Timestamp>) {
        self.expires = expires.into();
    }

    /// What its attempts have used up.
    #[must_use]
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

    /// Where it stands.
    pub(super) const fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// The same, shared with others that stand there.
    pub(super) fn stand(&mut self, standing: Arc<Standing>) {
        self.standing = standing;
    }

    /// The frame of the command it is at, if its handler has run and it is tried once more.
    #[must_use]
    pub fn repeated(&self) -> Option<&Frame> {
        self.frames
            .last()
            .filter(|frame| frame.command == self.command)
    }

    /// Turns to a command that was not tried before.
    pub(crate) fn turn_to(&mut self, command: u32) {
        self.command = command;
        self.attempts = 0;
        self.set_progress(Progress::default());
        self.cause = None;
        self.error = None;
    }

    /// Whether it is due and waits for a slot only.
    #[must_use]
    pub fn is_ready(&self, now: Timestamp) -> bool {
        matches!(self.doing, Doing::Waiting(due) if due <= now)
    }
}
