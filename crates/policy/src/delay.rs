//! The computation of a delay: backoff, then cap, then jitter.
//!
//! All code that shows, schedules, simulates or waits calls [`Pace::delay`], which returns the result
//! of each step.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::backoff::{Backoff, doubled};
use crate::draw::Draws;
use crate::jitter::{self, Jitter};
use crate::timestamp::nanos;

/// The pace of retries: initial delay, backoff, cap and jitter.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    // In nanoseconds: converting from and to `Duration` costs more than all arithmetic in this module.
    initial: u64,
    backoff: Backoff,
    cap: u64,
    jitter: Jitter,
    /// The result of [`Jitter::part`].
    part: u64,
}

/// A delay and the steps of its computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Delay {
    /// The result of the backoff strategy.
    pub computed: Duration,
    /// `computed`, or the cap if that is lower.
    pub capped: Duration,
    /// `capped` after jitter: the delay to use.
    pub drawn: Duration,
}

impl Pace {
    /// The default of `initial_delay`.
    pub const DEFAULT_INITIAL_DELAY: Duration = Duration::from_secs(1);
    /// The default of `max_delay`.
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
        Self {
            initial: nanos(initial_delay),
            backoff,
            cap: nanos(max_delay),
            jitter,
            part: jitter.fixed_point_factor(),
        }
    }

    /// The delay before retry n. `previous` is the delay before retry n−1, which only decorrelated jitter
    /// uses.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "measured: a third faster for callers that read only one of the three durations"
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

    /// A separate function, so that the common case above is short enough to be inlined.
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

    /// The delay from which the strategy grows.
    #[must_use]
    pub const fn initial_delay(&self) -> Duration {
        Duration::from_nanos(self.initial)
    }

    /// The backoff strategy.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// The cap, applied before jitter (after it for decorrelated jitter).
    #[must_use]
    pub const fn max_delay(&self) -> Duration {
        Duration::from_nanos(self.cap)
    }

    /// How delays are spread.
    #[must_use]
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::DEFAULT
    }
}
