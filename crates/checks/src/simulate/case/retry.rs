//! The `retry_config` of a case.

use std::time::Duration;

/// What it leaves out is set further out, or by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseRetry {
    pub attempts: Option<CaseAttempts>,
    pub backoff: Option<CaseBackoff>,
    pub initial_delay: Option<Duration>,
    pub max_delay: Option<Duration>,
    pub jitter: Option<CaseJitter>,
    pub budget: Option<Duration>,
    pub retry_on: Vec<CaseFailureKind>,
    pub statuses: Vec<u16>,
    pub max_retry_after: Option<Duration>,
    pub rules: Vec<CaseRule>,
}

impl CaseRetry {
    /// Whether its delay budget ends unlimited retries.
    pub fn is_bounded(&self) -> bool {
        self.budget.is_some() && self.backoff.is_some() && self.max_delay.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseAttempts {
    Times(u32),
    Unlimited,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseBackoff {
    Fixed,
    Linear(Duration),
    /// The base of the growth in halves, at least two.
    Exponential(u32),
    Fibonacci,
    Custom(Vec<Duration>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseJitter {
    None,
    /// Percent up or down.
    Around(u32),
    Full,
    Equal,
    Decorrelated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseFailureKind {
    Network,
    Timeout,
    ServerError,
    RateLimit,
}

impl CaseFailureKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::ServerError => "server_error",
            Self::RateLimit => "rate_limit",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseRule {
    pub when: CaseCondition,
    pub then: CaseAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseCondition {
    Always,
    Exit(i32),
    Signal(i32),
    Status(u16),
    Kind(CaseFailureKind),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseAction {
    /// With the rule's own terms, if it has any.
    Retry(Option<Box<CaseRetry>>),
    Stop,
    Skip,
    DeadLetter,
    Hold,
}
