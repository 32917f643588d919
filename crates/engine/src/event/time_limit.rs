//! The limit that ended an attempt: what it is called in a workflow, and its value.

use std::fmt;
use std::time::Duration;

use undaunted_policy::spelling::format_duration;

use super::codec;
use crate::stored::stored;

stored! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct TimeLimit {
        pub kind: TimeLimitKind = 0,
        /// The whole time allowed, of which earlier attempts may have used a part.
        pub allowed: Duration = 1 with "codec::span",
    }

    /// Equal to the key of the setting.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum TimeLimitKind {
        /// Of one attempt.
        Timeout = 0 => "timeout",
        /// Of one item of a map.
        ItemTimeout = 1 => "item_timeout",
        /// Of the job.
        Deadline = 2 => "deadline",
        /// Of the result of an accepted request.
        CompletionTimeout = 3 => "completion_timeout",
    }
}

impl TimeLimit {
    pub const fn new(kind: TimeLimitKind, allowed: Duration) -> Self {
        Self { kind, allowed }
    }
}

/// `300ms (timeout)`.
impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", format_duration(self.allowed), self.kind.word())
    }
}
