//! What a setting may be: impossible values are refused with what is accepted.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::backoff::Backoff;
use crate::error::PolicyError;
use crate::rules::Conditions;
use crate::timestamp::LONGEST;

pub(super) fn backoff(backoff: &Backoff) -> Result<(), PolicyError> {
    match backoff {
        Backoff::Exponential { base } if !(base.is_finite() && *base >= 1.0) => {
            Err(PolicyError::OutOfRange {
                field: "base",
                value: base.to_string(),
                accepted: "a number of at least 1",
            })
        }
        Backoff::Linear { increment } => in_range("increment", *increment),
        Backoff::Custom { delays } => delays
            .iter()
            .try_for_each(|delay| in_range("delays", *delay)),
        Backoff::Exponential { .. } | Backoff::Fixed | Backoff::Fibonacci => Ok(()),
    }
}

impl Conditions {
    /// Whether each condition names something that exists.
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        let within = |field, value: i32, range: RangeInclusive<i32>, accepted| {
            if range.contains(&value) {
                return Ok(());
            }
            Err(PolicyError::OutOfRange {
                field,
                value: value.to_string(),
                accepted,
            })
        };
        let codes = self.exit_codes.iter();
        codes
            .copied()
            .try_for_each(|code| within("exit_code", code, 0..=255, "a number from 0 to 255"))?;
        let signals = self.signals.iter();
        signals
            .copied()
            .try_for_each(|signal| within("signal", signal, 1..=64, "a number from 1 to 64"))?;
        self.statuses
            .iter()
            .try_for_each(|range| status_range("status", range))
    }
}

pub(super) fn status_range(
    field: &'static str,
    range: &RangeInclusive<u16>,
) -> Result<(), PolicyError> {
    if (100..=599).contains(range.start()) && (*range.start()..=599).contains(range.end()) {
        return Ok(());
    }
    Err(PolicyError::OutOfRange {
        field,
        value: format!("{}-{}", range.start(), range.end()),
        accepted: "HTTP statuses from 100 to 599",
    })
}

pub(super) fn in_range(field: &'static str, duration: Duration) -> Result<(), PolicyError> {
    if duration <= LONGEST {
        return Ok(());
    }
    Err(PolicyError::OutOfRange {
        field,
        value: format!("{}s", duration.as_secs()),
        accepted: "a duration of at most 584 years",
    })
}
