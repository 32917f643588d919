//! CBOR of breakers. Numbers of variants and fields are part of the stored format: they are added, never
//! reused.

use std::time::Duration;

use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};
use undaunted_policy::{Breaker, BreakerSettings, CircuitState, Timestamp, WhenOpen};

use super::state::{BreakerChange, BreakerChangeKind, BreakerState, Probe};
use crate::event::codec::{self, Decoded, Encoded};

/// A change and the resulting state: a whole record in format 1, a part of a fold in format 2.
#[derive(Encode, Decode)]
struct StoredState {
    #[cbor(n(0), with = "codec::time")]
    at: Timestamp,
    #[n(1)]
    change: BreakerChangeKind,
    #[n(2)]
    job: Option<String>,
    #[cbor(n(3), encode_with = "encode_settings", decode_with = "decode_settings")]
    settings: BreakerSettings,
    #[n(4)]
    phase: StoredPhase,
    #[n(5)]
    generation: u32,
    #[n(6)]
    probe: Option<Probe>,
    /// Absent in format 1.
    #[n(7)]
    failures: Option<u32>,
    #[n(8)]
    seq: Option<u64>,
}

#[derive(Encode, Decode)]
struct StoredSettings {
    #[n(0)]
    failure_threshold: u32,
    #[cbor(n(1), with = "codec::span")]
    recovery_timeout: Duration,
    #[n(2)]
    half_open_max_calls: u32,
    #[n(3)]
    fails: bool,
    #[cbor(n(4), with = "codec::maybe_span", has_nil)]
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
        #[cbor(n(0), with = "codec::time")]
        since: Timestamp,
        #[cbor(n(1), with = "codec::time")]
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

impl<C> Encode<C> for BreakerChange {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, context: &mut C) -> Encoded<W> {
        let state = &self.state;
        let stored = StoredState {
            at: self.at,
            change: self.change,
            job: self.job.clone(),
            settings: state.settings,
            phase: match state.breaker.circuit() {
                CircuitState::Closed { failures } => StoredPhase::Closed { failures },
                CircuitState::Open { since, until } => StoredPhase::Open { since, until },
                CircuitState::HalfOpen { successes, probing } => StoredPhase::HalfOpen { successes, probing },
            },
            generation: state.breaker.generation(),
            probe: state.probe.clone(),
            failures: Some(self.failures).filter(|failures| *failures > 0),
            seq: self.seq,
        };
        stored.encode(to, context)
    }
}

impl<'b, C> Decode<'b, C> for BreakerChange {
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Decoded<Self> {
        let stored = StoredState::decode(from, context)?;
        let phase = match stored.phase {
            StoredPhase::Closed { failures } => CircuitState::Closed { failures },
            StoredPhase::Open { since, until } => CircuitState::Open { since, until },
            StoredPhase::HalfOpen { successes, probing } => CircuitState::HalfOpen { successes, probing },
        };
        Ok(Self {
            at: stored.at,
            change: stored.change,
            job: stored.job,
            failures: stored.failures.unwrap_or_default(),
            seq: stored.seq,
            state: BreakerState {
                settings: stored.settings,
                breaker: Breaker::restored(phase, stored.generation),
                probe: stored.probe,
            },
        })
    }
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
