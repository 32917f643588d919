//! The records of a breaker's journal: facts.

use undaunted_policy::{BreakerSettings, CircuitState, Timestamp};

use super::report::TargetSignal;
use super::state::{BreakerChange, BreakerState};
use super::stored::{
    decode_circuit, decode_settings, decode_state, encode_circuit, encode_settings, encode_state,
};
use crate::event::{self, RecordError, codec, read_versioned, read_versioned_as, versioned_as};
use crate::stored::stored;

stored! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BreakerRecord {
        /// `None` for operators and housekeeping.
        pub job: Option<String> = 0,
        /// The length of that job's journal after the commit that contains this fact. By job and number a process tells its own facts
        /// from those of others.
        pub seq: Option<u64> = 1,
        pub facts: Vec<BreakerFact> = 2,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum BreakerFact {
        /// The settings of a submission. The latest apply.
        Configured {
            at: Timestamp = 0 with "codec::time",
            #[cbor(encode_with = "encode_settings", decode_with = "decode_settings")]
            settings: BreakerSettings = 1,
        } = 0,
        /// Consecutive attempts that ended with the same signal.
        Reported {
            at: Timestamp = 0 with "codec::time",
            /// The generation in which they started.
            generation: u32 = 1,
            probe: bool = 2,
            signal: TargetSignal = 3,
            many: u32 = 4,
        } = 1,
        Probed { at: Timestamp = 0 with "codec::time", generation: u32 = 1 } = 2,
        /// The process that ran the probe died; its result is not awaited.
        ProbeLost { at: Timestamp = 0 with "codec::time", generation: u32 = 1 } = 3,
        /// An operator opened the breaker.
        Tripped { at: Timestamp = 0 with "codec::time" } = 4,
        /// An operator closed the breaker.
        Reset { at: Timestamp = 0 with "codec::time" } = 5,
        /// An open state imported by a release that imported no other states.
        Imported { since: Timestamp = 0 with "codec::time", until: Timestamp = 1 with "codec::time" } = 6,
        /// From releases that stored the whole state with each change.
        State(Box<BreakerChange> = 0) = 7,
        /// All records up to `upto` fold to `state`, so they may be trimmed. Changes nothing.
        Folded {
            upto: u64 = 0,
            #[cbor(encode_with = "encode_state", decode_with = "decode_state")]
            state: Box<BreakerState> = 1,
            history: Vec<BreakerChange> = 2,
        } = 8,
        /// A state imported from another system.
        Restored {
            at: Timestamp = 0 with "codec::time",
            #[cbor(encode_with = "encode_circuit", decode_with = "decode_circuit")]
            circuit: CircuitState = 1,
            failures: u32 = 2,
            last_failure_at: Option<Timestamp> = 3 with "codec::maybe_time" has_nil,
        } = 9,
    }
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
