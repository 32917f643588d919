//! Times and durations in JSON.
//!
//! A view keeps the exact value, so that text can compute with it; only its JSON is rounded.

use std::time::{Duration, UNIX_EPOCH};

use serde::{Serialize, Serializer};
use undaunted_policy::Timestamp;

/// In JSON RFC 3339 in UTC, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstantView(pub Timestamp);

/// In JSON whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MillisView(pub Duration);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_larger_than_a_floating_point_reader_can_keep() {
        let json = |it: Duration| serde_json::to_string(&MillisView(it)).unwrap();
        assert_eq!(json(Duration::from_micros(1999)), "1");
        assert_eq!(json(Duration::MAX), "9007199254740991");
    }
}
