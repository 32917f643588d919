//! The records of a breaker's journal.
//!
//! Numbers of variants and fields are part of the stored format: they are added, never used again.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Breaker, BreakerSettings, Phase, Timestamp, WhenOpen};

use super::state::{BreakerState, Probe};
use crate::event::{RecordError, codec, read_versioned, versioned};

/// Something that has changed a breaker, and what it has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerRecord {
    /// When.
    pub at: Timestamp,
    /// What has changed.
    pub change: Change,
    /// The job that changed it; none if somebody did by hand.
    pub job: Option<String>,
    /// What it is now.
    pub state: BreakerState,
}

/// What changes a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Change {
    /// A job was submitted that gives it these settings.
    #[n(0)]
    Configured,
    /// An attempt has failed, and that is counted.
    #[n(1)]
    Failed,
    /// An attempt has succeeded, and the count starts again.
    #[n(2)]
    Succeeded,
    /// So many have failed in a row that it opens, or a probe has failed.
    #[n(3)]
    Opened,
    /// A rule, or somebody by hand, opens it.
    #[n(4)]
    Tripped,
    /// Its time has passed, and a first probe is made.
    #[n(5)]
    HalfOpened,
    /// Another probe is made.
    #[n(6)]
    Probed,
    /// A probe has succeeded, and more are needed.
    #[n(7)]
    ProbeSucceeded,
    /// A probe has come to nothing.
    #[n(8)]
    ProbeLost,
    /// Enough probes have succeeded.
    #[n(9)]
    Closed,
    /// Somebody closes it by hand.
    #[n(10)]
    Reset,
}

impl Change {
    /// The word for it.
    #[must_use]
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

impl BreakerRecord {
    /// The record as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        versioned(&Stored::from(self))
    }

    /// The record these bytes are.
    ///
    /// # Errors
    ///
    /// [`RecordError`]
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        read_versioned::<Stored>(bytes).map(Self::from)
    }
}

/// A record as it is stored.
#[derive(Encode, Decode)]
struct Stored {
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

impl From<&BreakerRecord> for Stored {
    fn from(record: &BreakerRecord) -> Self {
        let state = &record.state;
        let settings = &state.settings;
        Self {
            at: record.at,
            change: record.change,
            job: record.job.clone(),
            settings: StoredSettings {
                failure_threshold: settings.failure_threshold,
                recovery_timeout: settings.recovery_timeout,
                half_open_max_calls: settings.half_open_max_calls,
                fails: settings.when_open == WhenOpen::Fail,
                max_hold: settings.max_hold,
            },
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
        }
    }
}

impl From<Stored> for BreakerRecord {
    fn from(stored: Stored) -> Self {
        let settings = stored.settings;
        let phase = match stored.phase {
            StoredPhase::Closed { failures } => Phase::Closed { failures },
            StoredPhase::Open { since, until } => Phase::Open { since, until },
            StoredPhase::HalfOpen { successes, probing } => Phase::HalfOpen { successes, probing },
        };
        Self {
            at: stored.at,
            change: stored.change,
            job: stored.job,
            state: BreakerState {
                settings: BreakerSettings {
                    failure_threshold: settings.failure_threshold,
                    recovery_timeout: settings.recovery_timeout,
                    half_open_max_calls: settings.half_open_max_calls,
                    when_open: if settings.fails {
                        WhenOpen::Fail
                    } else {
                        WhenOpen::Hold
                    },
                    max_hold: settings.max_hold,
                },
                breaker: Breaker::restored(phase, stored.generation),
                probe: stored.probe.map(|probe| Probe {
                    job: probe.job,
                    since: probe.since,
                }),
            },
        }
    }
}
