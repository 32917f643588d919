//! The records of a breaker's journal: facts.

use undaunted_policy::{BreakerSettings, Timestamp};

use super::report::Signal;
use super::state::{BreakerChange, BreakerState, Change};
use super::stored;
use crate::event::RecordError;

/// What one commit of a job, or an operator, adds to the journal of a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerRecord {
    /// The job whose commit this is part of; none for what was done by hand or as housekeeping.
    pub job: Option<String>,
    /// How many records the journal of that job has with the commit. Job and number together tell a
    /// process its own facts from those of others.
    pub seq: Option<u64>,
    pub facts: Vec<Fact>,
}

/// Something that has happened to a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A submission gives it these settings; the latest one wins.
    Configured {
        at: Timestamp,
        settings: BreakerSettings,
    },
    /// Attempts have ended, one after the other and all alike.
    Reported {
        /// When the last of them did.
        at: Timestamp,
        /// The generation of the breaker in which they started.
        generation: u32,
        probe: bool,
        /// What they say about the target.
        signal: Signal,
        many: u32,
    },
    Probed {
        at: Timestamp,
        /// The generation of the breaker.
        generation: u32,
    },
    /// The process that ran a probe is gone, and its result is not waited for.
    ProbeLost {
        at: Timestamp,
        /// The generation of the breaker.
        generation: u32,
    },
    /// An operator opens it.
    Tripped { at: Timestamp },
    /// An operator closes it.
    Reset { at: Timestamp },
    /// It was open elsewhere, and its state was imported.
    Imported {
        /// Since when it is open.
        since: Timestamp,
        until: Timestamp,
    },
    /// A record as releases wrote it before breakers were folds of facts: the state it led to.
    State(Box<BreakerChange>),
    /// All records up to a version come to this, so those may be trimmed. Says nothing new.
    Folded {
        /// The last of these records.
        upto: u64,
        /// What they come to.
        state: Box<BreakerState>,
        /// The latest openings and closings among them.
        history: Vec<BreakerChange>,
    },
}

impl BreakerRecord {
    /// The newest format that is read, and the one that is written.
    pub const FORMAT: u8 = stored::FACTS;

    /// Facts that no job has told.
    pub const fn by_hand(facts: Vec<Fact>) -> Self {
        Self {
            job: None,
            seq: None,
            facts,
        }
    }

    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        stored::encode(self)
    }

    /// The record these bytes are.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        stored::decode(bytes)
    }
}

impl Fact {
    /// Adds a fact to those of the same commit. Results that are alike become one fact, so that a
    /// thousand successes cost what one costs.
    pub(super) fn add(facts: &mut Vec<Self>, fact: Self) {
        if let (
            Some(Self::Reported {
                at: last,
                generation: last_generation,
                probe: false,
                signal: last_signal,
                many: last_many,
            }),
            Self::Reported {
                at,
                generation,
                probe: false,
                signal,
                many,
            },
        ) = (facts.last_mut(), &fact)
            && (*last_generation, *last_signal) == (*generation, *signal)
            // A failure may be the one that opens the breaker, whose recovery timeout runs from then.
            && (*last == *at || matches!(signal, Signal::Up | Signal::Unknown))
        {
            *last = *at;
            *last_many = last_many.saturating_add(*many);
            return;
        }
        facts.push(fact);
    }
}

impl Change {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Failed => "failure",
            Self::Succeeded => "success",
            Self::Opened => "opened",
            Self::Tripped => "tripped",
            Self::HalfOpened => "half_opened",
            Self::Probed => "probe",
            Self::ProbeSucceeded => "probe_succeeded",
            Self::ProbeLost => "probe_lost",
            Self::Closed => "closed",
            Self::Reset => "reset",
        }
    }
}
