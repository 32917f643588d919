//! Checks of single settings. An invalid value is refused with what would be accepted.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::backoff::Backoff;
use crate::error::PolicyError;
use crate::rules::Conditions;
use crate::strategy::ParameterValue;
use crate::timestamp::LONGEST;

pub(super) fn backoff(backoff: &Backoff) -> Result<(), PolicyError> {
    let mut backoff = backoff.clone();
    backoff.slots().into_iter().try_for_each(|(field, slot)| match slot {
        ParameterValue::Span(span) => in_range(field, *span),
        ParameterValue::Spans(spans) => spans.iter().try_for_each(|span| in_range(field, *span)),
        ParameterValue::Factor(factor) if factor.is_finite() && *factor >= 1.0 => Ok(()),
        ParameterValue::Factor(factor) => Err(PolicyError::OutOfRange {
            field,
            value: factor.to_string(),
            accepted: "a number of at least 1",
        }),
    })
}

impl Conditions {
    /// Checks that exit codes, signals and statuses are in range.
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        let within = |field, value: i32, range: RangeInclusive<i32>, accepted| {
            if range.contains(&value) {
                return Ok(());
            }
            Err(PolicyError::OutOfRange { field, value: value.to_string(), accepted })
        };
        let codes = self.exit_codes.iter();
        codes.copied().try_for_each(|code| within("exit_code", code, 0..=255, "a number from 0 to 255"))?;
        let signals = self.signals.iter();
        signals.copied().try_for_each(|signal| within("signal", signal, 1..=64, "a number from 1 to 64"))?;
        self.statuses.iter().try_for_each(|range| status_range("status", range))
    }
}

pub(super) fn status_range(field: &'static str, range: &RangeInclusive<u16>) -> Result<(), PolicyError> {
    if (100..=599).contains(range.start()) && (*range.start()..=599).contains(range.end()) {
        return Ok(());
    }
    Err(PolicyError::OutOfRange {
        field,
        value: format!("{}-{}", range.start(), range.end()),
        accepted: "a range of HTTP statuses from 100 to 599",
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
