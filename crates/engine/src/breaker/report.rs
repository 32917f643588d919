//! What a job reports to the breakers of its commands.

use std::sync::Arc;

use undaunted_policy::{Health, Ticket, Timestamp};

use super::record::BreakerFact;
use crate::stored::stored;

/// Written as a fact in the same append as the job's record that it follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakerReport {
    Started { breaker: Arc<str>, ticket: Ticket },
    Ended { breaker: Arc<str>, ticket: Ticket, signal: TargetSignal },
}

stored! {
    /// What the end of an attempt says about its target.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TargetSignal {
        Up = 0,
        Down = 1,
        Unknown = 2,
        /// A rule of the command says that the target is down (`then: hold`).
        Trip = 3,
    }
}

impl From<Health> for TargetSignal {
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

    pub const fn ends_probe(&self) -> bool {
        matches!(self, Self::Ended { ticket, .. } if ticket.probe)
    }

    /// The start of an ordinary attempt says nothing about the target and gives no fact.
    pub(super) const fn fact(&self, at: Timestamp) -> Option<BreakerFact> {
        match *self {
            Self::Started { ticket, .. } if ticket.probe => {
                Some(BreakerFact::Probed { at, generation: ticket.generation() })
            }
            Self::Started { .. } => None,
            Self::Ended { ticket, signal, .. } => Some(BreakerFact::Reported {
                at,
                generation: ticket.generation(),
                probe: ticket.probe,
                signal,
                many: 1,
            }),
        }
    }
}
