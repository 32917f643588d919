//! What the journal of a job holds about breakers: holds, releases, passes.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Ticket, Timestamp};

use super::attempt::{AttemptId, RetryArithmetic};
use super::codec;
use super::job::PolicyChange;
use super::text::StoredText;

/// Only read: earlier releases wrote these events, and breakers have journals of their own now.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum BreakerEvent {
    #[n(34)]
    Opened(#[n(0)] BreakerOpened),
    #[n(35)]
    HalfOpened {
        #[n(0)]
        breaker: StoredText,
    },
    #[n(36)]
    Closed {
        #[n(0)]
        breaker: StoredText,
    },
    #[n(37)]
    Configured {
        #[n(0)]
        breaker: StoredText,
        #[n(1)]
        changes: Vec<PolicyChange>,
    },
}

impl BreakerEvent {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Opened(_) => "breaker_opened",
            Self::HalfOpened { .. } => "breaker_half_opened",
            Self::Closed { .. } => "breaker_closed",
            Self::Configured { .. } => "breaker_configured",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BreakerPass {
    #[n(0)]
    pub breaker: StoredText,
    /// How often the breaker had opened before.
    #[n(1)]
    pub generation: u32,
    #[n(2)]
    pub probe: bool,
}

impl BreakerPass {
    /// Returned to the breaker with the result.
    pub const fn ticket(&self) -> Ticket {
        Ticket::restored(self.generation, self.probe)
    }
}

/// A breaker holds an item; no attempt is used.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StartHeld {
    /// The last attempt made.
    #[n(0)]
    pub of: AttemptId,
    #[n(1)]
    pub breaker: StoredText,
    /// When the breaker may be probed, if known.
    #[cbor(n(2), with = "codec::maybe_time", has_nil)]
    pub until: Option<Timestamp>,
    /// When the hold ends by failing the item.
    #[cbor(n(3), with = "codec::maybe_time", has_nil)]
    pub expires: Option<Timestamp>,
    /// Attempts left; `None` is unlimited.
    #[n(4)]
    pub left: Option<u64>,
    /// The retry that the hold leads to, if a rule holds after a failure. It is charged.
    #[n(5)]
    pub sum: Option<RetryArithmetic>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StartReleased {
    /// The last attempt made.
    #[n(0)]
    pub of: AttemptId,
    #[n(1)]
    pub breaker: StoredText,
    #[cbor(n(2), with = "codec::span")]
    pub held: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BreakerOpened {
    #[n(0)]
    pub breaker: StoredText,
    #[cbor(n(1), with = "codec::time")]
    pub until: Timestamp,
    /// Consecutive failures; 0 if a rule or a probe opened it.
    #[n(2)]
    pub failures: u32,
    #[n(3)]
    pub by_rule: bool,
}
