//! A failed attempt as a value, and the names of signals.
//!
//! A failing attempt is not an `Err` of this crate but data that a policy classifies. This module defines
//! the facts and their default class; the rules of a policy (`rules.rs`) may classify them differently.

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
    /// The attempt exceeded its timeout.
    Timeout,
    /// The other side could not be reached, or the connection broke.
    Network,
    /// The other side answered with this HTTP status.
    Status(u16),
    /// The other side refused the request (`success: false`).
    Refused,
    /// The answer does not follow the protocol.
    Unreadable,
    /// The attempt was lost together with the process that ran it.
    Interrupted,
    /// Any other cause, classified by the caller.
    Other(FailureClass),
}

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FailureClass {
    /// It may work the next time.
    Transient,
    /// It may work later; the target has said when.
    Throttled,
    /// It will fail the same way again.
    Permanent,
}

impl FailureCause {
    /// The class of this cause if no rule and no setting of the policy changes it.
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

/// One failed attempt: its cause and its text, which is borrowed so that a verdict copies none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// What ended the attempt.
    pub cause: FailureCause,
    /// The wait that the target asked for (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// What the attempt wrote to standard error, or the text of the error.
    pub stderr: &'a str,
    /// What the attempt wrote to standard output, or the body of the response.
    pub output: &'a str,
}

impl<'a> Failure<'a> {
    /// A failure of which only the cause is known.
    #[must_use]
    pub const fn new(cause: FailureCause) -> Self {
        Self { cause, retry_after: None, stderr: "", output: "" }
    }

    /// A transient failure of unknown cause.
    #[must_use]
    pub const fn transient() -> Self {
        Self::new(FailureCause::Other(FailureClass::Transient))
    }

    /// A permanent failure of unknown cause.
    #[must_use]
    pub const fn permanent() -> Self {
        Self::new(FailureCause::Other(FailureClass::Permanent))
    }

    /// A failure with this HTTP status.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::new(FailureCause::Status(status))
    }

    /// Sets the wait that the target asked for.
    #[must_use]
    pub const fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// Sets the text that rules and `retry_on` match, as standard error.
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

/// The names of the signals of Linux without `SIG`, in the order of their numbers, from 1.
pub const SIGNAL_NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The name of a signal, without `SIG`; `None` for a real-time signal.
#[must_use]
pub fn signal_name(number: i32) -> Option<&'static str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    SIGNAL_NAMES.get(index).copied()
}

/// The number of the signal called `name`, with or without `SIG`.
#[must_use]
pub fn signal_number(name: &str) -> Option<i32> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    let index = SIGNAL_NAMES.iter().position(|known| *known == name)?;
    i32::try_from(index.saturating_add(1)).ok()
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
