//! What is recorded of breakers in the journal of a job whose attempts ask them.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Ticket, Timestamp};

use super::attempt::{AttemptId, Sum};
use super::codec;
use super::job::PolicyChange;
use super::text::Text;

/// What a job of an earlier release recorded of its breakers; they have their own journals now.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum BreakerEvent {
    /// An attempt of this job has opened a breaker.
    #[n(34)]
    Opened(#[n(0)] Opened),
    /// An attempt of this job finds out whether the target of a breaker is back.
    #[n(35)]
    HalfOpened {
        #[n(0)]
        breaker: Text,
    },
    /// An attempt of this job has closed a breaker.
    #[n(36)]
    Closed {
        #[n(0)]
        breaker: Text,
    },
    /// This job has given a breaker other settings.
    #[n(37)]
    Configured {
        #[n(0)]
        breaker: Text,
        /// Every setting that differs.
        #[n(1)]
        changes: Vec<PolicyChange>,
    },
}

impl BreakerEvent {
    /// The word it has in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Opened(_) => "breaker_opened",
            Self::HalfOpened { .. } => "breaker_half_opened",
            Self::Closed { .. } => "breaker_closed",
            Self::Configured { .. } => "breaker_configured",
        }
    }
}

/// The breaker that let an attempt through.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Pass {
    #[n(0)]
    pub breaker: Text,
    /// How often it had opened before.
    #[n(1)]
    pub generation: u32,
    /// Whether the attempt finds out if the target is back.
    #[n(2)]
    pub probe: bool,
}

impl Pass {
    /// What is handed back to the breaker with the result.
    pub const fn ticket(&self) -> Ticket {
        Ticket::restored(self.generation, self.probe)
    }
}

/// An item would start, and its breaker keeps it back. No attempt is used.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Held {
    /// Whose; the attempt is the last one made.
    #[n(0)]
    pub of: AttemptId,
    #[n(1)]
    pub breaker: Text,
    /// When the breaker looks again, if that is known.
    #[n(2)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub until: Option<Timestamp>,
    /// When the item is held no longer and fails, if there is such a time.
    #[n(3)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub expires: Option<Timestamp>,
    /// How many attempts it has left; `None` is any number.
    #[n(4)]
    pub left: Option<u64>,
    /// If a rule holds it after a failure: the retry this leads to, which is charged.
    #[n(5)]
    pub sum: Option<Sum>,
}

/// A breaker has let an item go.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Released {
    /// Whose; the attempt is the last one made.
    #[n(0)]
    pub of: AttemptId,
    #[n(1)]
    pub breaker: Text,
    /// How long it was held.
    #[n(2)]
    #[cbor(with = "codec::span")]
    pub held: Duration,
}

/// An attempt of this job has opened a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Opened {
    #[n(0)]
    pub breaker: Text,
    /// Until then nothing starts.
    #[n(1)]
    #[cbor(with = "codec::time")]
    pub until: Timestamp,
    /// Failures in a row that opened it; none if a rule or a probe did.
    #[n(2)]
    pub failures: u32,
    /// Whether a rule of the command opened it.
    #[n(3)]
    pub by_rule: bool,
}
