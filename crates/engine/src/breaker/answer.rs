//! What a breaker answers to an attempt that is about to start.

use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{Ticket, Timestamp};

/// A breaker's answer; part of the input that starts an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BreakerAnswer {
    #[default]
    NoBreaker,
    Admitted {
        breaker: Arc<str>,
        /// Returned to the breaker with the result.
        ticket: Ticket,
    },
    /// The attempt waits; it uses no attempt, budget or slot.
    Held {
        breaker: Arc<str>,
        /// When the next probe may start, while the breaker is open.
        until: Option<Timestamp>,
        longest: Option<Duration>,
    },
    /// The command stops with `circuit_open`.
    Refused { breaker: Arc<str> },
}
