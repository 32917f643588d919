//! The `retry_config` of a case: what it says, and what it leaves to others.

use std::time::Duration;

/// A `retry_config`. What it does not say is for a place further out, or the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseRetry {
    /// How many retries.
    pub attempts: Option<CaseAttempts>,
    /// How delays grow.
    pub backoff: Option<CaseBackoff>,
    /// The first delay.
    pub initial_delay: Option<Duration>,
    /// The longest delay before jitter.
    pub max_delay: Option<Duration>,
    /// How delays are spread.
    pub jitter: Option<CaseJitter>,
    /// The most that delays may add up to.
    pub budget: Option<Duration>,
    /// What is retried only.
    pub retry_on: Vec<CaseFailureKind>,
    /// Statuses that are transient.
    pub statuses: Vec<u16>,
    /// The longest `CaseRetry-After` that is waited for.
    pub max_retry_after: Option<Duration>,
    /// What else becomes of a failure; the first that matches decides.
    pub rules: Vec<CaseRule>,
}

impl CaseRetry {
    /// Whether it ends retries without a number: a delay budget, and delays of some length.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.budget.is_some() && self.backoff.is_some() && self.max_delay.is_some()
    }
}

/// How many retries are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseAttempts {
    /// So many.
    Times(u32),
    /// As many as other limits leave.
    Unlimited,
}

/// How delays grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseBackoff {
    /// Not at all.
    Fixed,
    /// By so much each time.
    Linear(Duration),
    /// By a factor each time: so many halves, at least two.
    Exponential(u32),
    /// As the Fibonacci numbers do.
    Fibonacci,
    /// As listed.
    Custom(Vec<Duration>),
}

/// How a delay is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseJitter {
    /// Not at all.
    None,
    /// By a factor around 1, so many percent up or down.
    Around(u32),
    /// Between nothing and the delay.
    Full,
    /// Between half the delay and all of it.
    Equal,
    /// Between the first delay and three times the one before.
    Decorrelated,
}

/// What sort of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseFailureKind {
    /// Nobody was reached.
    Network,
    /// It took too long.
    Timeout,
    /// A status from 500 up.
    ServerError,
    /// Status 429.
    RateLimit,
}

impl CaseFailureKind {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::ServerError => "server_error",
            Self::RateLimit => "rate_limit",
        }
    }
}

/// One row of the table of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseRule {
    /// What it is for.
    pub when: CaseCondition,
    /// What becomes of it.
    pub then: CaseAction,
}

/// What a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseCondition {
    /// Every failure.
    Always,
    /// An exit status.
    Exit(i32),
    /// A signal.
    Signal(i32),
    /// An HTTP status.
    Status(u16),
    /// A sort of failure.
    Kind(CaseFailureKind),
}

/// What becomes of a failure that a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseAction {
    /// It is retried, on terms of the rule's own where it has any.
    Retry(Option<Box<CaseRetry>>),
    /// No further retry.
    Stop,
    /// The item is skipped.
    Skip,
    /// The item is a dead letter at once.
    DeadLetter,
    /// The command's breaker opens, and the item is held.
    Hold,
}
