//! What an attempt does, as the script of a case has it.

use std::time::Duration;

/// What one attempt does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// How long it takes, if nobody ends it before.
    pub takes: Duration,
    /// How it ends.
    pub how: How,
}

/// How an attempt ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// Well, having written this. Of a step of a flow: its outputs, a JSON object.
    Success(String),
    /// With this exit status, which is not 0.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// Never by itself.
    Hang,
    /// With this HTTP status, which is no success, and the seconds of its `Retry-After`.
    Status(u16, Option<u64>),
    /// Nobody took the connection.
    Refused,
    /// The answer says `"success": false`.
    Denied,
    /// An async step says that it has taken the work on; what comes of it comes so much later.
    Later(Box<Act>),
}

/// What the attempts of one command do for one item: one act each, the last for all that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The acts of attempt 1, 2 and so on; never empty.
    pub acts: Vec<Act>,
}

impl Script {
    /// What the attempt of this number, counted from 1, does.
    #[must_use]
    pub fn act(&self, attempt: u32) -> Act {
        let place = usize::try_from(attempt).unwrap_or(usize::MAX);
        let act = self.acts.get(place.saturating_sub(1));
        act.or(self.acts.last()).cloned().unwrap_or_else(Act::nothing)
    }
}

impl Act {
    /// A success in a millisecond: what anything does that a script does not mention.
    #[must_use]
    pub fn nothing() -> Self {
        Self { takes: Duration::from_millis(1), how: How::Success(String::new()) }
    }
}
