//! The one function that computes a delay.
//!
//! Everything that shows, schedules, simulates or waits calls [`Pace::delay`]; there is no second
//! computation of a wait anywhere. It is compute, then cap, then jitter, and it returns all three.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::backoff::{Backoff, doubled};
use crate::draw::Draws;
use crate::jitter::{self, Jitter};
use crate::timestamp::nanos;

/// How fast retries follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayPolicy {
    // In nanoseconds: a `Duration` is seconds and a rest, and taking it apart and putting it
    // together again costs more than everything that is done with it here.
    /// The delay the strategy grows from.
    initial: u64,
    /// The strategy.
    backoff: Backoff,
    /// The cap, applied before jitter (after it for decorrelated jitter).
    cap: u64,
    /// The spread.
    jitter: Jitter,
    /// What `jitter` makes of its factor.
    part: u64,
}

/// A delay and how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Delay {
    /// What the strategy gives.
    pub computed: Duration,
    /// That, or the cap if it is lower.
    pub capped: Duration,
    /// That, after jitter: the delay.
    pub drawn: Duration,
}

impl DelayPolicy {
    /// The delay used when nothing else is said.
    pub const DEFAULT_INITIAL_DELAY: Duration = Duration::from_secs(1);
    /// The cap used when nothing else is said.
    pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(30);
    /// Exponential from 1s with base 2, capped at 30s, without jitter.
    pub const DEFAULT: Self =
        Self::new(Self::DEFAULT_INITIAL_DELAY, Backoff::DEFAULT, Self::DEFAULT_MAX_DELAY, Jitter::None);

    pub(crate) const fn new(
        initial_delay: Duration,
        backoff: Backoff,
        max_delay: Duration,
        jitter: Jitter,
    ) -> Self {
        Self { initial: nanos(initial_delay), backoff, cap: nanos(max_delay), jitter, part: jitter.part() }
    }

    /// The delay before retry n. `previous` is the delay before retry n−1, which decorrelated
    /// jitter grows from; nothing else looks at it.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "measured: a third less where only one of the three durations is looked at"
    )]
    #[must_use]
    pub fn delay(&self, retry: NonZeroU32, previous: Option<Duration>, draws: Draws) -> Delay {
        match self.jitter {
            Jitter::Decorrelated => {}
            _ if !self.backoff.doubles() => {}
            _ => return self.spread(doubled(self.initial, retry), retry, draws),
        }
        self.delay_otherwise(retry, previous, draws)
    }

    /// Kept apart, so that what nearly everybody uses is short enough to become part of its caller.
    #[inline(never)]
    fn delay_otherwise(&self, retry: NonZeroU32, previous: Option<Duration>, draws: Draws) -> Delay {
        let computed = match self.jitter {
            Jitter::Decorrelated => jitter::decorrelated(self.initial, previous, retry, draws),
            _ => self.backoff.computed(retry, self.initial, self.cap),
        };
        self.spread(computed, retry, draws)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "part of `delay`")]
    fn spread(&self, computed: u64, retry: NonZeroU32, draws: Draws) -> Delay {
        let capped = computed.min(self.cap);
        let spread = self.jitter.spread(capped, self.part, retry, draws);
        Delay {
            computed: Duration::from_nanos(computed),
            capped: Duration::from_nanos(capped),
            drawn: Duration::from_nanos(spread),
        }
    }

    /// The delay the strategy grows from.
    #[must_use]
    pub const fn initial_delay(&self) -> Duration {
        Duration::from_nanos(self.initial)
    }

    /// The strategy.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// The cap.
    #[must_use]
    pub const fn max_delay(&self) -> Duration {
        Duration::from_nanos(self.cap)
    }

    /// The spread.
    #[must_use]
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }
}

impl Default for DelayPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
