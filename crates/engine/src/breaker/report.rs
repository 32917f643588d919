//! What a job tells the breakers of its commands.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use undaunted_policy::{Health, Ticket, Timestamp};

use super::record::Fact;

/// Something a job tells a breaker. It becomes a fact of the breaker, written in the same step as the
/// job's records it follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakerReport {
    /// An attempt starts that the breaker has let through.
    Started {
        breaker: Arc<str>,
        /// What let it through.
        ticket: Ticket,
    },
    /// An attempt has ended that the breaker had let through.
    Ended {
        breaker: Arc<str>,
        /// What had let it through.
        ticket: Ticket,
        /// What the result says about the target.
        signal: Signal,
    },
}

/// What the end of an attempt says about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Signal {
    #[n(0)]
    Up,
    #[n(1)]
    Down,
    /// Nothing can be said.
    #[n(2)]
    Unknown,
    /// A rule of the command says that the target is down (`then: hold`).
    #[n(3)]
    Trip,
}

impl From<Health> for Signal {
    fn from(health: Health) -> Self {
        match health {
            Health::Up => Self::Up,
            Health::Down => Self::Down,
            Health::Unknown => Self::Unknown,
        }
    }
}

impl BreakerReport {
    pub const fn breaker(&self) -> &Arc<str> {
        match self {
            Self::Started { breaker, .. } | Self::Ended { breaker, .. } => breaker,
        }
    }

    /// Whether it is the result of a probe.
    pub const fn ends_probe(&self) -> bool {
        matches!(self, Self::Ended { ticket, .. } if ticket.probe)
    }

    /// The fact that the breaker keeps. A start that is no probe is none: it says nothing about the
    /// target.
    pub(super) const fn fact(&self, at: Timestamp) -> Option<Fact> {
        match *self {
            Self::Started { ticket, .. } if ticket.probe => Some(Fact::Probed {
                at,
                generation: ticket.generation(),
            }),
            Self::Started { .. } => None,
            Self::Ended { ticket, signal, .. } => Some(Fact::Reported {
                at,
                generation: ticket.generation(),
                probe: ticket.probe,
                signal,
                many: 1,
            }),
        }
    }
}
