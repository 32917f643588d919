//! An instant as a number of nanoseconds.
//!
//! Nothing here reads a clock; the caller passes the current time. All arithmetic saturates: an instant
//! that is too late to represent is [`Timestamp::MAX`], not a panic.

use core::time::Duration;

/// Nanoseconds since the Unix epoch, or since any other fixed origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin of all timestamps.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be represented; in effect "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant this many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant this many milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the origin.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The instant `wait` later; [`Timestamp::MAX`] if that cannot be represented.
    #[must_use]
    pub const fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The longest duration the crate works with: 2^64 ns, about 584 years.
pub(crate) const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// A duration in nanoseconds, [`LONGEST`] at most.
#[expect(clippy::cast_possible_truncation, reason = "the value was compared with the largest that fits")]
pub(crate) const fn nanos(duration: Duration) -> u64 {
    let wide = duration.as_nanos();
    if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_past_the_last_one_is_the_last_one() {
        assert_eq!(Timestamp::from_nanos(u64::MAX - 1).after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::MAX);
    }

    #[test]
    fn the_time_since_a_later_instant_is_zero() {
        let early = Timestamp::from_millis(1);
        let late = Timestamp::from_millis(3);
        assert_eq!(late.since(early), Duration::from_millis(2));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
