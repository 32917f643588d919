//! The state of one item.

use std::collections::BTreeMap;

use serde_json::Value;
use undaunted_policy::{Cause, Progress, Reason, Timestamp};

use crate::event::Text;

/// An item.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Item {
    /// It was never started.
    #[default]
    Pending,
    /// It was started and is not settled.
    Active(Box<Active>),
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
#[derive(Clone, Debug, PartialEq)]
pub struct Active {
    /// The command it is at.
    pub command: u32,
    /// Attempts of that command so far.
    pub attempts: u32,
    /// What they have used up.
    pub progress: Progress,
    /// What happens now.
    pub doing: Doing,
    /// The round, counted from 1.
    pub round: u32,
    /// Units of the job's pool it has used.
    pub charged: u32,
    /// When its time began to run: its first start, moved by the time it was suspended. None while it
    /// has not started.
    pub began: Option<Timestamp>,
    /// When its retry is too late to be made after unplanned downtime, if there is such a time.
    pub expires: Option<Timestamp>,
    /// How the last attempt of the command failed.
    pub cause: Option<Cause>,
    /// What it said when it failed.
    pub error: Option<Text>,
    /// Commands that have stopped and whose handlers are not done with; the innermost is the last.
    pub frames: Vec<Frame>,
    /// What its commands have left for later ones.
    pub scope: Option<Box<Scope>>,
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
        Self {
            command,
            attempts: 0,
            progress: Progress::default(),
            doing: Doing::Waiting(due),
            round: 1,
            charged: 0,
            began: None,
            expires: None,
            cause: None,
            error: None,
            frames: Vec::new(),
            scope: None,
        }
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
        self.progress = Progress::default();
        self.cause = None;
        self.error = None;
    }

    /// Whether it is due and waits for a slot only.
    #[must_use]
    pub fn is_ready(&self, now: Timestamp) -> bool {
        matches!(self.doing, Doing::Waiting(due) if due <= now)
    }
}
