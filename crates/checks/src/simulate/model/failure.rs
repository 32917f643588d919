//! How an attempt ended, and what that means.

use crate::simulate::case::{FailureKind, When};

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success(String),
    Exit(i32),
    Signal(i32),
    Timeout,
    Status(u16, Option<u64>),
    Network,
    /// The answer says that it was no success.
    Denied,
    /// What it wrote is not what was to be captured.
    Unreadable,
}

/// What a result says about the target of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Up,
    Down,
    Nothing,
}

impl Outcome {
    /// Whether trying again may help, before any setting is looked at.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Exit(status) => !matches!(status, 126 | 127),
            Self::Signal(_) | Self::Timeout | Self::Network => true,
            Self::Status(status, _) => *status >= 500,
            Self::Denied | Self::Unreadable | Self::Success(_) => false,
        }
    }

    pub(super) fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Timeout => Some(FailureKind::Timeout),
            Self::Network => Some(FailureKind::Network),
            Self::Status(429, _) => Some(FailureKind::RateLimit),
            Self::Status(500.., _) => Some(FailureKind::ServerError),
            _ => None,
        }
    }

    pub(super) fn matches(&self, when: When) -> bool {
        match (when, self) {
            (When::Always, _) => true,
            (When::Exit(wanted), Self::Exit(status)) => wanted == *status,
            (When::Signal(wanted), Self::Signal(signal)) => wanted == *signal,
            (When::Status(wanted), Self::Status(status, _)) => wanted == *status,
            (When::Kind(wanted), _) => self.kind() == Some(wanted),
            _ => false,
        }
    }

    /// What it says about the target; `throttled` if it is retried and was asked to wait.
    pub(super) fn signal(&self, throttled: bool, is_call: bool) -> Signal {
        match self {
            // Somebody has answered.
            Self::Unreadable if is_call => Signal::Up,
            Self::Success(_) | Self::Denied => Signal::Up,
            Self::Status(_, _) if throttled => Signal::Down,
            Self::Status(status, _) if *status < 500 => Signal::Up,
            _ if self.is_transient() => Signal::Down,
            _ => Signal::Nothing,
        }
    }
}
