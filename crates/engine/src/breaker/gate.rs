//! What a breaker answers to an attempt that is about to start.

use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{Ticket, Timestamp};

/// The answer of the breaker of a command; part of the input that starts an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// The command asks no breaker.
    #[default]
    None,
    /// The attempt may start.
    Open {
        breaker: Arc<str>,
        /// Handed back with the result.
        ticket: Ticket,
    },
    /// The attempt waits; it uses nothing meanwhile.
    Held {
        breaker: Arc<str>,
        /// When the next probe may start, while the breaker is open.
        until: Option<Timestamp>,
        /// `max_hold`: how long the item may be held.
        longest: Option<Duration>,
    },
    /// The command stops with `circuit_open`.
    Refused { breaker: Arc<str> },
}
