//! What went wrong, as a value.
//!
//! A failing attempt is not an `Err`: it is data that a policy classifies. This file knows the
//! facts and their default class; `rules.rs` lets a policy see it differently.

use core::time::Duration;

/// What ended the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum FailureCause {
    /// A process ended with this exit code.
    Exit(i32),
    /// A process was ended by this signal.
    Signal(i32),
    /// The attempt took longer than it may.
    Timeout,
    /// The other side could not be reached, or the connection broke.
    Network,
    /// The other side answered with this HTTP status.
    Status(u16),
    /// The other side answered that it will not do it (`success: false`).
    Refused,
    /// The other side answered, and the answer cannot be read as the protocol asks.
    Unreadable,
    /// The attempt vanished together with the process that ran it.
    Interrupted,
    /// Anything else, classified by whoever saw it.
    Other(FailureClass),
}

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FailureClass {
    /// It may work the next time.
    Transient,
    /// It may work later, and the other side has said when.
    Throttled,
    /// It will fail the same way again.
    Permanent,
}

impl FailureCause {
    /// The class of this cause when the policy says nothing about it.
    #[must_use]
    pub const fn class(self) -> FailureClass {
        match self {
            // 126 and 127 are the shell's "cannot be executed" and "not found".
            Self::Exit(126 | 127) | Self::Refused | Self::Unreadable => FailureClass::Permanent,
            Self::Exit(_)
            | Self::Signal(_)
            | Self::Timeout
            | Self::Network
            | Self::Interrupted
            | Self::Status(500..=599) => FailureClass::Transient,
            Self::Status(_) => FailureClass::Permanent,
            Self::Other(class) => class,
        }
    }
}

/// One failed attempt: the cause and what it said. Borrowed, so that asking for a verdict copies no
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// What ended the attempt.
    pub cause: FailureCause,
    /// How long the other side asks to wait (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// What the attempt wrote to standard error, or the text of the error.
    pub stderr: &'a str,
    /// What the attempt wrote to standard output, or the body of the answer.
    pub output: &'a str,
}

impl<'a> Failure<'a> {
    /// A failure of which only the cause is known.
    #[must_use]
    pub const fn new(cause: FailureCause) -> Self {
        Self { cause, retry_after: None, stderr: "", output: "" }
    }

    /// A failure that may not happen again.
    #[must_use]
    pub const fn transient() -> Self {
        Self::new(FailureCause::Other(FailureClass::Transient))
    }

    /// A failure that would happen again.
    #[must_use]
    pub const fn permanent() -> Self {
        Self::new(FailureCause::Other(FailureClass::Permanent))
    }

    /// An HTTP answer.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::new(FailureCause::Status(status))
    }

    /// The same failure, with the wait the other side asked for.
    #[must_use]
    pub const fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// The same failure, with the text that rules and `retry_on` look at.
    #[must_use]
    pub const fn text(mut self, stderr: &'a str) -> Self {
        self.stderr = stderr;
        self
    }
}

impl From<FailureCause> for Failure<'_> {
    fn from(cause: FailureCause) -> Self {
        Self::new(cause)
    }
}

impl From<FailureClass> for Failure<'_> {
    fn from(class: FailureClass) -> Self {
        Self::new(FailureCause::Other(class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_class_of_each_cause_is_the_documented_one() {
        use FailureClass::{Permanent, Transient};
        for (cause, class) in [
            (FailureCause::Exit(1), Transient),
            (FailureCause::Exit(125), Transient),
            (FailureCause::Exit(126), Permanent),
            (FailureCause::Exit(127), Permanent),
            (FailureCause::Exit(255), Transient),
            (FailureCause::Signal(9), Transient),
            (FailureCause::Timeout, Transient),
            (FailureCause::Network, Transient),
            (FailureCause::Interrupted, Transient),
            (FailureCause::Refused, Permanent),
            (FailureCause::Unreadable, Permanent),
            (FailureCause::Status(200), Permanent),
            (FailureCause::Status(302), Permanent),
            (FailureCause::Status(404), Permanent),
            (FailureCause::Status(429), Permanent),
            (FailureCause::Status(499), Permanent),
            (FailureCause::Status(500), Transient),
            (FailureCause::Status(599), Transient),
            (FailureCause::Status(600), Permanent),
        ] {
            assert_eq!(cause.class(), class, "{cause:?}");
        }
    }
}
