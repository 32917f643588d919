//! Records of breakers as bytes.
//!
//! The first byte is the format. Format 1 is what releases wrote that kept the whole state in every
//! record; it is only read. Format 2 holds facts. Numbers of variants and fields are part of the stored
//! format: they are added, never used again.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Breaker, BreakerSettings, Phase, Timestamp, WhenOpen};

use super::record::{BreakerRecord, Fact};
use super::report::Signal;
use super::state::{BreakerChange, BreakerState, Change, Probe};
use crate::event::{FORMAT, RecordError, codec, read_versioned, read_versioned_as, versioned_as};

/// The format that is written.
pub(super) const FACTS: u8 = 2;

pub(super) fn encode(record: &BreakerRecord) -> Vec<u8> {
    let facts = record.facts.iter().map(StoredFact::from);
    let stored = StoredRecord {
        job: record.job.clone(),
        seq: record.seq,
        facts: facts.collect(),
    };
    versioned_as(FACTS, &stored)
}

pub(super) fn decode(bytes: &[u8]) -> Result<BreakerRecord, RecordError> {
    if bytes.first() == Some(&FORMAT) {
        let change = BreakerChange::from(read_versioned::<StoredState>(bytes)?);
        return Ok(BreakerRecord {
            job: change.job.clone(),
            seq: None,
            facts: vec![Fact::State(Box::new(change))],
        });
    }
    let stored: StoredRecord = read_versioned_as(FACTS, bytes)?;
    Ok(BreakerRecord {
        job: stored.job,
        seq: stored.seq,
        facts: stored.facts.into_iter().map(Fact::from).collect(),
    })
}

#[derive(Encode, Decode)]
struct StoredRecord {
    #[n(0)]
    job: Option<String>,
    #[n(1)]
    seq: Option<u64>,
    #[n(2)]
    facts: Vec<StoredFact>,
}

#[derive(Encode, Decode)]
enum StoredFact {
    #[n(0)]
    Configured {
        #[n(0)]
        #[cbor(with = "codec::time")]
        at: Timestamp,
        #[n(1)]
        settings: StoredSettings,
    },
    #[n(1)]
    Reported {
        #[n(0)]
        #[cbor(with = "codec::time")]
        at: Timestamp,
        #[n(1)]
        generation: u32,
        #[n(2)]
        probe: bool,
        #[n(3)]
        signal: Signal,
        #[n(4)]
        many: u32,
    },
    #[n(2)]
    Probed {
        #[n(0)]
        #[cbor(with = "codec::time")]
        at: Timestamp,
        #[n(1)]
        generation: u32,
    },
    #[n(3)]
    ProbeLost {
        #[n(0)]
        #[cbor(with = "codec::time")]
        at: Timestamp,
        #[n(1)]
        generation: u32,
    },
    #[n(4)]
    Tripped {
        #[n(0)]
        #[cbor(with = "codec::time")]
        at: Timestamp,
    },
    #[n(5)]
    Reset {
        #[n(0)]
        #[cbor(with = "codec::time")]
        at: Timestamp,
    },
    #[n(6)]
    Imported {
        #[n(0)]
        #[cbor(with = "codec::time")]
        since: Timestamp,
        #[n(1)]
        #[cbor(with = "codec::time")]
        until: Timestamp,
    },
    #[n(7)]
    State {
        #[n(0)]
        change: StoredState,
    },
    #[n(8)]
    Folded {
        #[n(0)]
        upto: u64,
        #[n(1)]
        state: StoredState,
        #[n(2)]
        history: Vec<StoredState>,
    },
}

/// A change and the state it led to: the whole of a record of format 1, and a part of records that stand
/// for trimmed ones.
#[derive(Encode, Decode)]
struct StoredState {
    #[n(0)]
    #[cbor(with = "codec::time")]
    at: Timestamp,
    #[n(1)]
    change: Change,
    #[n(2)]
    job: Option<String>,
    #[n(3)]
    settings: StoredSettings,
    #[n(4)]
    phase: StoredPhase,
    #[n(5)]
    generation: u32,
    #[n(6)]
    probe: Option<StoredProbe>,
    /// Not known of records of format 1.
    #[n(7)]
    failures: Option<u32>,
    #[n(8)]
    seq: Option<u64>,
}

#[derive(Encode, Decode)]
struct StoredSettings {
    #[n(0)]
    failure_threshold: u32,
    #[n(1)]
    #[cbor(with = "codec::span")]
    recovery_timeout: Duration,
    #[n(2)]
    half_open_max_calls: u32,
    #[n(3)]
    fails: bool,
    #[n(4)]
    #[cbor(with = "codec::maybe_span", has_nil)]
    max_hold: Option<Duration>,
}

#[derive(Encode, Decode)]
enum StoredPhase {
    #[n(0)]
    Closed {
        #[n(0)]
        failures: u32,
    },
    #[n(1)]
    Open {
        #[n(0)]
        #[cbor(with = "codec::time")]
        since: Timestamp,
        #[n(1)]
        #[cbor(with = "codec::time")]
        until: Timestamp,
    },
    #[n(2)]
    HalfOpen {
        #[n(0)]
        successes: u32,
        #[n(1)]
        probing: bool,
    },
}

#[derive(Encode, Decode)]
struct StoredProbe {
    #[n(0)]
    job: String,
    #[n(1)]
    #[cbor(with = "codec::time")]
    since: Timestamp,
}

impl From<&Fact> for StoredFact {
    fn from(fact: &Fact) -> Self {
        match fact {
            Fact::Configured { at, settings } => Self::Configured {
                at: *at,
                settings: settings.into(),
            },
            &Fact::Reported {
                at,
                generation,
                probe,
                signal,
                many,
            } => Self::Reported {
                at,
                generation,
                probe,
                signal,
                many,
            },
            &Fact::Probed { at, generation } => Self::Probed { at, generation },
            &Fact::ProbeLost { at, generation } => Self::ProbeLost { at, generation },
            &Fact::Tripped { at } => Self::Tripped { at },
            &Fact::Reset { at } => Self::Reset { at },
            &Fact::Imported { since, until } => Self::Imported { since, until },
            Fact::State(change) => Self::State {
                change: (&**change).into(),
            },
            Fact::Folded {
                upto,
                state,
                history,
            } => Self::Folded {
                upto: *upto,
                // When and why it came to be is what the history says.
                state: (&BreakerChange {
                    at: Timestamp::ZERO,
                    change: Change::Configured,
                    job: None,
                    seq: None,
                    failures: 0,
                    state: BreakerState::clone(state),
                })
                    .into(),
                history: history.iter().map(StoredState::from).collect(),
            },
        }
    }
}

impl From<StoredFact> for Fact {
    fn from(stored: StoredFact) -> Self {
        match stored {
            StoredFact::Configured { at, settings } => Self::Configured {
                at,
                settings: settings.into(),
            },
            StoredFact::Reported {
                at,
                generation,
                probe,
                signal,
                many,
            } => Self::Reported {
                at,
                generation,
                probe,
                signal,
                many,
            },
            StoredFact::Probed { at, generation } => Self::Probed { at, generation },
            StoredFact::ProbeLost { at, generation } => Self::ProbeLost { at, generation },
            StoredFact::Tripped { at } => Self::Tripped { at },
            StoredFact::Reset { at } => Self::Reset { at },
            StoredFact::Imported { since, until } => Self::Imported { since, until },
            StoredFact::State { change } => Self::State(Box::new(change.into())),
            StoredFact::Folded {
                upto,
                state,
                history,
            } => Self::Folded {
                upto,
                state: Box::new(BreakerChange::from(state).state),
                history: history.into_iter().map(BreakerChange::from).collect(),
            },
        }
    }
}

impl From<&BreakerChange> for StoredState {
    fn from(change: &BreakerChange) -> Self {
        let state = &change.state;
        Self {
            at: change.at,
            change: change.change,
            job: change.job.clone(),
            settings: (&state.settings).into(),
            phase: match state.breaker.phase() {
                Phase::Closed { failures } => StoredPhase::Closed { failures },
                Phase::Open { since, until } => StoredPhase::Open { since, until },
                Phase::HalfOpen { successes, probing } => {
                    StoredPhase::HalfOpen { successes, probing }
                }
            },
            generation: state.breaker.generation(),
            probe: state.probe.as_ref().map(|probe| StoredProbe {
                job: probe.job.clone(),
                since: probe.since,
            }),
            failures: Some(change.failures).filter(|failures| *failures > 0),
            seq: change.seq,
        }
    }
}

impl From<StoredState> for BreakerChange {
    fn from(stored: StoredState) -> Self {
        let phase = match stored.phase {
            StoredPhase::Closed { failures } => Phase::Closed { failures },
            StoredPhase::Open { since, until } => Phase::Open { since, until },
            StoredPhase::HalfOpen { successes, probing } => Phase::HalfOpen { successes, probing },
        };
        Self {
            at: stored.at,
            change: stored.change,
            job: stored.job,
            failures: stored.failures.unwrap_or_default(),
            seq: stored.seq,
            state: BreakerState {
                settings: stored.settings.into(),
                breaker: Breaker::restored(phase, stored.generation),
                probe: stored.probe.map(|probe| Probe {
                    job: probe.job,
                    since: probe.since,
                }),
            },
        }
    }
}

impl From<&BreakerSettings> for StoredSettings {
    fn from(settings: &BreakerSettings) -> Self {
        Self {
            failure_threshold: settings.failure_threshold,
            recovery_timeout: settings.recovery_timeout,
            half_open_max_calls: settings.half_open_max_calls,
            fails: settings.when_open == WhenOpen::Fail,
            max_hold: settings.max_hold,
        }
    }
}

impl From<StoredSettings> for BreakerSettings {
    fn from(stored: StoredSettings) -> Self {
        Self {
            failure_threshold: stored.failure_threshold,
            recovery_timeout: stored.recovery_timeout,
            half_open_max_calls: stored.half_open_max_calls,
            when_open: if stored.fails {
                WhenOpen::Fail
            } else {
                WhenOpen::Hold
            },
            max_hold: stored.max_hold,
        }
    }
}
