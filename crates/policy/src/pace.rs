//! The one function that computes a delay.
//!
//! Everything that shows, schedules, simulates or waits calls [`Pace::delay`]; there is no second
//! computation of a wait anywhere. It is compute, then cap, then jitter, and it returns all three.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::backoff::Backoff;
use crate::draw::Draws;
use crate::jitter::{self, Jitter};

/// How fast retries follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// The delay the strategy grows from.
    pub(crate) initial_delay: Duration,
    /// The strategy.
    pub(crate) backoff: Backoff,
    /// The cap, applied before jitter (after it for decorrelated jitter).
    pub(crate) max_delay: Duration,
    /// The spread.
    pub(crate) jitter: Jitter,
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

impl Pace {
    /// The delay used when nothing else is said.
    pub const DEFAULT_INITIAL_DELAY: Duration = Duration::from_secs(1);
    /// The cap used when nothing else is said.
    pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(30);
    /// Exponential from 1s with base 2, capped at 30s, without jitter.
    pub const DEFAULT: Self = Self {
        initial_delay: Self::DEFAULT_INITIAL_DELAY,
        backoff: Backoff::DEFAULT,
        max_delay: Self::DEFAULT_MAX_DELAY,
        jitter: Jitter::None,
    };

    /// The delay before retry n. `previous` is the delay before retry n−1, which decorrelated
    /// jitter grows from; nothing else looks at it.
    #[inline]
    #[must_use]
    pub fn delay(&self, retry: NonZeroU32, previous: Option<Duration>, draws: Draws) -> Delay {
        if self.jitter == Jitter::Decorrelated {
            let computed = jitter::decorrelated(self.initial_delay, previous, retry, draws);
            let capped = computed.min(self.max_delay);
            return Delay {
                computed,
                capped,
                drawn: capped,
            };
        }
        let computed = self
            .backoff
            .computed(retry, self.initial_delay, self.max_delay);
        let capped = computed.min(self.max_delay);
        Delay {
            computed,
            capped,
            drawn: self.jitter.spread(capped, retry, draws),
        }
    }

    /// The delay the strategy grows from.
    #[must_use]
    pub const fn initial_delay(&self) -> Duration {
        self.initial_delay
    }

    /// The strategy.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// The cap.
    #[must_use]
    pub const fn max_delay(&self) -> Duration {
        self.max_delay
    }

    /// The spread.
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
