//! CBOR of breakers.

use std::time::Duration;

use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};
use undaunted_policy::{Breaker, BreakerSettings, CircuitState, Timestamp, WhenOpen};

use super::state::{BreakerChange, BreakerChangeKind, BreakerState, Probe};
use crate::event::codec::{self, Decoded, Encoded};
use crate::stored::stored;

stored! {
    /// A change and the resulting state: a whole record in format 1, a part of a fold in format 2.
    struct StoredState {
        at: Timestamp = 0 with "codec::time",
        change: BreakerChangeKind = 1,
        job: Option<String> = 2,
        #[cbor(encode_with = "encode_settings", decode_with = "decode_settings")]
        settings: BreakerSettings = 3,
        phase: StoredPhase = 4,
        generation: u32 = 5,
        probe: Option<Probe> = 6,
        /// Absent in format 1.
        failures: Option<u32> = 7,
        seq: Option<u64> = 8,
        /// Of a state that is not closed. Absent if there are none, as the next one is.
        failures_since: Option<u32> = 9,
        last_failure_at: Option<Timestamp> = 10 with "codec::maybe_time" has_nil,
    }

    struct StoredSettings {
        failure_threshold: u32 = 0,
        recovery_timeout: Duration = 1 with "codec::span",
        half_open_max_calls: u32 = 2,
        fails: bool = 3,
        max_hold: Option<Duration> = 4 with "codec::maybe_span" has_nil,
    }

    enum StoredPhase {
        Closed { failures: u32 = 0 } = 0,
        Open { since: Timestamp = 0 with "codec::time", until: Timestamp = 1 with "codec::time" } = 1,
        HalfOpen { successes: u32 = 0, probing: bool = 1 } = 2,
    }
}

impl<C> Encode<C> for BreakerChange {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, context: &mut C) -> Encoded<W> {
        let state = &self.state;
        let stored = StoredState {
            at: self.at,
            change: self.change,
            job: self.job.clone(),
            settings: state.settings,
            phase: state.breaker.circuit().into(),
            generation: state.breaker.generation(),
            probe: state.probe.clone(),
            failures: Some(self.failures).filter(|failures| *failures > 0),
            seq: self.seq,
            failures_since: Some(state.failures_since).filter(|failures| *failures > 0),
            last_failure_at: state.last_failure_at,
        };
        stored.encode(to, context)
    }
}

impl<'b, C> Decode<'b, C> for BreakerChange {
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Decoded<Self> {
        let stored = StoredState::decode(from, context)?;
        Ok(Self {
            at: stored.at,
            change: stored.change,
            job: stored.job,
            failures: stored.failures.unwrap_or_default(),
            seq: stored.seq,
            state: BreakerState {
                settings: stored.settings,
                breaker: Breaker::restored(stored.phase.into(), stored.generation),
                probe: stored.probe,
                failures_since: stored.failures_since.unwrap_or_default(),
                last_failure_at: stored.last_failure_at,
            },
        })
    }
}

impl From<CircuitState> for StoredPhase {
    fn from(circuit: CircuitState) -> Self {
        match circuit {
            CircuitState::Closed { failures } => Self::Closed { failures },
            CircuitState::Open { since, until } => Self::Open { since, until },
            CircuitState::HalfOpen { successes, probing } => Self::HalfOpen { successes, probing },
        }
    }
}

impl From<StoredPhase> for CircuitState {
    fn from(stored: StoredPhase) -> Self {
        match stored {
            StoredPhase::Closed { failures } => Self::Closed { failures },
            StoredPhase::Open { since, until } => Self::Open { since, until },
            StoredPhase::HalfOpen { successes, probing } => Self::HalfOpen { successes, probing },
        }
    }
}

pub(super) fn encode_circuit<C, W: Write>(
    circuit: &CircuitState,
    to: &mut Encoder<W>,
    context: &mut C,
) -> Encoded<W> {
    StoredPhase::from(*circuit).encode(to, context)
}

pub(super) fn decode_circuit<C>(from: &mut Decoder<'_>, context: &mut C) -> Decoded<CircuitState> {
    Ok(StoredPhase::decode(from, context)?.into())
}

pub(super) fn encode_settings<C, W: Write>(
    settings: &BreakerSettings,
    to: &mut Encoder<W>,
    context: &mut C,
) -> Encoded<W> {
    let stored = StoredSettings {
        failure_threshold: settings.failure_threshold,
        recovery_timeout: settings.recovery_timeout,
        half_open_max_calls: settings.half_open_max_calls,
        fails: settings.when_open == WhenOpen::Fail,
        max_hold: settings.max_hold,
    };
    stored.encode(to, context)
}

pub(super) fn decode_settings<C>(from: &mut Decoder<'_>, context: &mut C) -> Decoded<BreakerSettings> {
    let stored = StoredSettings::decode(from, context)?;
    Ok(BreakerSettings {
        failure_threshold: stored.failure_threshold,
        recovery_timeout: stored.recovery_timeout,
        half_open_max_calls: stored.half_open_max_calls,
        when_open: if stored.fails { WhenOpen::Fail } else { WhenOpen::Hold },
        max_hold: stored.max_hold,
    })
}

/// A state alone is stored like a change to it.
pub(super) fn encode_state<C, W: Write>(
    state: &BreakerState,
    to: &mut Encoder<W>,
    context: &mut C,
) -> Encoded<W> {
    let change = BreakerChange {
        at: Timestamp::ZERO,
        change: BreakerChangeKind::Configured,
        job: None,
        seq: None,
        failures: 0,
        state: state.clone(),
    };
    change.encode(to, context)
}

pub(super) fn decode_state<C>(from: &mut Decoder<'_>, context: &mut C) -> Decoded<Box<BreakerState>> {
    Ok(Box::new(BreakerChange::decode(from, context)?.state))
}
