//! Times and durations in JSON.
//!
//! A view keeps the exact value, so that text can compute with it; only its JSON is rounded. Measured durations are
//! whole milliseconds. Computed delays are exact: short ones are a fraction of a millisecond apart, and a schedule
//! must show those that a job then makes.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Serialize, Serializer};
use serde_json::Number;
use undaunted_policy::Timestamp;

/// In JSON RFC 3339 in UTC, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstantView(pub Timestamp);

/// In JSON whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MillisView(pub Duration);

/// A computed delay or a sum of them, in JSON in milliseconds: a whole number if it is one, else a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DelayView(pub Duration);

impl Serialize for InstantView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

impl Serialize for MillisView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(millis(self.0))
    }
}

impl Serialize for DelayView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        exact_millis(self.0).serialize(serializer)
    }
}

impl std::fmt::Display for InstantView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&rfc3339(self.0))
    }
}

/// In UTC, to the millisecond.
pub fn rfc3339(at: Timestamp) -> String {
    // The last second that RFC 3339 can express.
    const LAST: u64 = 253_402_300_799;
    let since = Duration::from_nanos(at.as_nanos()).min(Duration::from_secs(LAST));
    let at = UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_millis(at).to_string()
}

/// At most 2⁵³ − 1: readers that keep numbers as floating point would round more.
pub fn millis(duration: Duration) -> u64 {
    const MOST: u64 = (1 << 53) - 1;
    u64::try_from(duration.as_millis()).map_or(MOST, |millis| millis.min(MOST))
}

/// As [`millis`], with a fraction if it is not whole and floating point can represent it.
pub(super) fn exact_millis(duration: Duration) -> Number {
    let nanos = duration.as_nanos();
    let whole = Number::from(millis(duration));
    if nanos.is_multiple_of(1_000_000) || nanos > 1 << 53 {
        return whole;
    }
    #[expect(clippy::cast_precision_loss, reason = "up to 2^53 there is no loss")]
    let exact = nanos as f64 / 1e6;
    Number::from_f64(exact).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_larger_than_a_floating_point_reader_can_keep() {
        let json = |it: Duration| serde_json::to_string(&MillisView(it)).unwrap();
        assert_eq!(json(Duration::from_micros(1999)), "1");
        assert_eq!(json(Duration::MAX), "9007199254740991");
    }

    #[test]
    fn a_delay_is_a_whole_number_or_has_a_fraction() {
        let json = |it: Duration| serde_json::to_string(&DelayView(it)).unwrap();
        assert_eq!(json(Duration::from_micros(1999)), "1.999");
        assert_eq!(json(Duration::from_nanos(500)), "0.0005");
        assert_eq!(json(Duration::from_millis(50)), "50");
        assert_eq!(json(Duration::from_nanos(u64::MAX)), "18446744073709");
        assert_eq!(json(Duration::MAX), "9007199254740991");
    }
}
