//! What the journal of a job holds about breakers: holds, releases, passes.

use std::time::Duration;

use undaunted_policy::{Ticket, Timestamp};

use super::attempt::{AttemptId, RetryArithmetic};
use super::codec;
use super::job::PolicyChange;
use super::text::StoredText;
use crate::stored::stored;

stored! {
    /// Only read: earlier releases wrote these events, and breakers have journals of their own now.
    #[derive(Clone, Debug, PartialEq)]
    pub enum BreakerEvent {
        Opened(BreakerOpened = 0) = 34 => "breaker_opened",
        HalfOpened { breaker: StoredText = 0 } = 35 => "breaker_half_opened",
        Closed { breaker: StoredText = 0 } = 36 => "breaker_closed",
        Configured { breaker: StoredText = 0, changes: Vec<PolicyChange> = 1 } = 37 => "breaker_configured",
    }
}

stored! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BreakerPass {
        pub breaker: StoredText = 0,
        /// How often the breaker had opened before.
        pub generation: u32 = 1,
        pub probe: bool = 2,
    }
}

impl BreakerPass {
    /// Returned to the breaker with the result.
    pub const fn ticket(&self) -> Ticket {
        Ticket::restored(self.generation, self.probe)
    }
}

stored! {
    /// A breaker holds an item; no attempt is used.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StartHeld {
        /// The last attempt made.
        pub of: AttemptId = 0,
        pub breaker: StoredText = 1,
        /// When the breaker may be probed, if known.
        pub until: Option<Timestamp> = 2 with "codec::maybe_time" has_nil,
        /// When the hold ends by failing the item.
        pub expires: Option<Timestamp> = 3 with "codec::maybe_time" has_nil,
        /// Attempts left; `None` is unlimited.
        pub left: Option<u64> = 4,
        /// The retry that the hold leads to, if a rule holds after a failure. It is charged.
        pub arithmetic: Option<RetryArithmetic> = 5,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StartReleased {
        /// The last attempt made.
        pub of: AttemptId = 0,
        pub breaker: StoredText = 1,
        pub held: Duration = 2 with "codec::span",
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BreakerOpened {
        pub breaker: StoredText = 0,
        pub until: Timestamp = 1 with "codec::time",
        /// Consecutive failures; 0 if a rule or a probe opened it.
        pub failures: u32 = 2,
        pub by_rule: bool = 3,
    }
}
