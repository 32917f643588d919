//! The records of a breaker's journal: facts.
//!
//! Numbers of variants and fields are part of the stored format: they are added, never reused.

use minicbor::{Decode, Encode};
use undaunted_policy::{BreakerSettings, Timestamp};

use super::report::TargetSignal;
use super::state::{BreakerChange, BreakerChangeKind, BreakerState};
use super::stored::{decode_settings, decode_state, encode_settings, encode_state};
use crate::event::{self, RecordError, codec, read_versioned, read_versioned_as, versioned_as};

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BreakerRecord {
    /// `None` for operators and housekeeping.
    #[n(0)]
    pub job: Option<String>,
    /// The length of that job's journal with the commit. By job and number a process tells its own facts from
    /// those of others.
    #[n(1)]
    pub seq: Option<u64>,
    #[n(2)]
    pub facts: Vec<BreakerFact>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum BreakerFact {
    /// The settings of a submission. The latest apply.
    #[n(0)]
    Configured {
        #[cbor(n(0), with = "codec::time")]
        at: Timestamp,
        #[cbor(n(1), encode_with = "encode_settings", decode_with = "decode_settings")]
        settings: BreakerSettings,
    },
    /// Consecutive attempts that ended with the same signal.
    #[n(1)]
    Reported {
        #[cbor(n(0), with = "codec::time")]
        at: Timestamp,
        /// The generation in which they started.
        #[n(1)]
        generation: u32,
        #[n(2)]
        probe: bool,
        #[n(3)]
        signal: TargetSignal,
        #[n(4)]
        many: u32,
    },
    #[n(2)]
    Probed {
        #[cbor(n(0), with = "codec::time")]
        at: Timestamp,
        #[n(1)]
        generation: u32,
    },
    /// The process that ran the probe died; its result is not awaited.
    #[n(3)]
    ProbeLost {
        #[cbor(n(0), with = "codec::time")]
        at: Timestamp,
        #[n(1)]
        generation: u32,
    },
    /// An operator opened the breaker.
    #[n(4)]
    Tripped {
        #[cbor(n(0), with = "codec::time")]
        at: Timestamp,
    },
    /// An operator closed the breaker.
    #[n(5)]
    Reset {
        #[cbor(n(0), with = "codec::time")]
        at: Timestamp,
    },
    /// An open state imported from another system.
    #[n(6)]
    Imported {
        #[cbor(n(0), with = "codec::time")]
        since: Timestamp,
        #[cbor(n(1), with = "codec::time")]
        until: Timestamp,
    },
    /// From releases that stored the whole state with each change.
    #[n(7)]
    State(#[n(0)] Box<BreakerChange>),
    /// All records up to `upto` fold to `state`, so they may be trimmed. Changes nothing.
    #[n(8)]
    Folded {
        #[n(0)]
        upto: u64,
        #[cbor(n(1), encode_with = "encode_state", decode_with = "decode_state")]
        state: Box<BreakerState>,
        #[n(2)]
        history: Vec<BreakerChange>,
    },
}

impl BreakerRecord {
    /// The newest format that is read, and the one that is written. Format 1 kept the whole state in every
    /// record; it is only read.
    pub const FORMAT: u8 = 2;

    pub const fn by_hand(facts: Vec<BreakerFact>) -> Self {
        Self { job: None, seq: None, facts }
    }

    pub fn encode(&self) -> Vec<u8> {
        versioned_as(Self::FORMAT, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.first() != Some(&event::FORMAT) {
            return read_versioned_as(Self::FORMAT, bytes);
        }
        let change: BreakerChange = read_versioned(bytes)?;
        Ok(Self { job: change.job.clone(), seq: None, facts: vec![BreakerFact::State(Box::new(change))] })
    }
}

impl BreakerFact {
    /// Adds a fact to those of the same commit. Merges equal results, so that a thousand successes take as
    /// much space as one.
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
            // A failure may open the breaker, and the recovery timeout counts from that failure.
            && (*last == *at || matches!(signal, TargetSignal::Up | TargetSignal::Unknown))
        {
            *last = *at;
            *last_many = last_many.saturating_add(*many);
            return;
        }
        facts.push(fact);
    }
}

impl BreakerChangeKind {
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
