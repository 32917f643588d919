//! An instant, as a plain number.
//!
//! Nothing here reads a clock: whoever decides what "now" is passes it in. All arithmetic
//! saturates, because a wait too long to represent is "very far away", never a crash.

use core::time::Duration;

/// Nanoseconds since the Unix epoch, or since any origin the caller keeps to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The last instant there is; in effect "never".
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

/// The longest duration the crate works with, about 584 years.
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
    fn an_instant_past_the_end_of_time_is_the_end_of_time() {
        assert_eq!(Timestamp::from_nanos(u64::MAX - 1).after(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_millis(u64::MAX), Timestamp::MAX);
    }

    #[test]
    fn nothing_is_before_itself_by_a_negative_time() {
        let early = Timestamp::from_millis(1);
        let late = Timestamp::from_millis(3);
        assert_eq!(late.since(early), Duration::from_millis(2));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
