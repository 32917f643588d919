//! An optional number in eight bytes instead of sixteen, for the instants and durations of a million
//! waiting items.
//!
//! The largest number stands for none; an instant or duration that large, some 584 years, becomes the one
//! below it.

use std::time::Duration;

use undaunted_policy::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompactOption(pub(super) u64);

impl CompactOption {
    pub(super) const NONE: Self = Self(u64::MAX);

    pub(super) const fn some(nanos: u64) -> Self {
        Self(if nanos == u64::MAX { nanos.saturating_sub(1) } else { nanos })
    }

    fn nanos(self) -> Option<u64> {
        Some(self.0).filter(|_| self != Self::NONE)
    }

    pub(super) fn time(self) -> Option<Timestamp> {
        self.nanos().map(Timestamp::from_nanos)
    }

    pub(super) fn span(self) -> Option<Duration> {
        self.nanos().map(Duration::from_nanos)
    }
}

impl From<Option<Timestamp>> for CompactOption {
    fn from(time: Option<Timestamp>) -> Self {
        time.map_or(Self::NONE, |time| Self::some(time.as_nanos()))
    }
}

impl From<Option<Duration>> for CompactOption {
    fn from(span: Option<Duration>) -> Self {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        span.map_or(Self::NONE, |span| Self::some(nanos(span)))
    }
}
