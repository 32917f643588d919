//! The error of a wrapped call that did not succeed.

use core::fmt;

use crate::reason::Reason;
use crate::verdict::Verdict;

/// Why a call is not tried again, after how many attempts, and the last error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped<E>(
    // Boxed, so that the `Result` of a successful call stays small.
    pub(super) Box<StoppedDetails<E>>,
);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoppedDetails<E> {
    pub(super) reason: Reason,
    pub(super) attempts: u32,
    pub(super) error: Option<E>,
    pub(super) verdict: Option<Box<Verdict>>,
}

impl<E> Stopped<E> {
    /// Why no further attempt is made.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// How often the call was made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// The error of the last attempt, if there was one.
    #[must_use]
    pub fn error(&self) -> Option<&E> {
        self.0.error.as_ref()
    }

    /// Takes the error of the last attempt out of this value.
    #[must_use]
    pub fn into_error(self) -> Option<E> {
        self.0.error
    }

    /// The verdict that stopped the call, with its arithmetic; `None` after a refusal by a breaker or a
    /// cancellation.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.0.verdict.as_deref()
    }
}

impl<E> fmt::Display for Stopped<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.verdict {
            Some(verdict) => write!(f, "{verdict}")?,
            None => f.write_str(self.0.reason.sentence())?,
        }
        match (self.0.reason, self.0.attempts) {
            (Reason::Attempts, _) => Ok(()),
            (_, 1) => f.write_str(" after 1 attempt"),
            (_, attempts) => write!(f, " after {attempts} attempts"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Stopped<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.as_ref().map(|error| error as _)
    }
}
