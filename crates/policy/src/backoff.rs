//! How a delay grows from one retry to the next.
//!
//! Pure arithmetic: no clock, no random source, no sleeping. The caller passes the retry number and gets a
//! duration, in constant time for every retry number. `delay.rs` applies the cap and the jitter, so that
//! each of the three can be shown separately.
//!
//! Reading, writing and help texts derive from [`Backoff::ALL`]. Two places list the strategies themselves, because
//! their formats are not ours: `state_file/shape.rs` in the engine, and the independent models in `checks`.

use std::borrow::Cow;

use core::num::NonZeroU32;
use core::time::Duration;

use crate::config::RetryConfig;
use crate::grain;
use crate::strategy::{Parameter, ParameterKind, ParameterValue, Strategy};
use crate::timestamp::nanos;

/// A backoff strategy: how long the delay before retry n is.
#[derive(Clone, Debug, PartialEq)]
pub enum Backoff {
    /// Always the initial delay.
    Fixed,
    /// The initial delay, and `increment` more for every further retry.
    Linear {
        /// What each retry adds.
        increment: Duration,
    },
    /// The initial delay times `base` to the power n−1.
    Exponential {
        /// The growth factor, at least 1.
        base: f64,
    },
    /// The initial delay times the n-th Fibonacci number (1, 1, 2, 3, 5 …).
    Fibonacci,
    /// These delays in order; past the end, or with no entry at all, the cap.
    Custom {
        /// The delay before retry 1, 2, 3 …
        delays: Cow<'static, [Duration]>,
    },
}

impl Backoff {
    /// The default strategy: exponential with base 2.
    pub const DEFAULT: Self = Self::Exponential { base: 2.0 };

    /// Every strategy once, with default parameters where there are any.
    pub const ALL: &'static [Self] = &[
        Self::Fixed,
        Self::Linear { increment: Duration::ZERO },
        Self::DEFAULT,
        Self::Fibonacci,
        Self::Custom { delays: Cow::Borrowed(&[]) },
    ];

    /// The name, parameters and help texts of this strategy.
    #[must_use]
    pub const fn strategy(&self) -> &'static Strategy {
        use ParameterKind::{Factor, Span, Spans};
        const INITIAL: Parameter = Parameter::INITIAL;
        match self {
            Self::Fixed => &Strategy {
                name: "fixed",
                about: "The same delay every time.",
                parameters: &const {
                    let about = "The delay; the same as `initial_delay`.";
                    let delay = Parameter::new("delay", Span, about);
                    let initial = Parameter::new("initial", Span, "The same as `delay`.");
                    let of = Parameter::INITIAL_DELAY;
                    [delay.spelling(of), initial.spelling(of)]
                },
            },
            Self::Linear { .. } => &Strategy {
                name: "linear",
                about: "Grows by the same amount with each retry.",
                parameters: &const {
                    let increment = Parameter::new("increment", Span, "What each retry adds.");
                    let missing = "its step: `{linear: {increment: 1s}}`";
                    [INITIAL, increment.required(missing)]
                },
            },
            Self::Exponential { .. } => &Strategy {
                name: "exponential",
                about: "Grows by the same factor with each retry.",
                parameters: &const {
                    let about = "The factor, at least 1 (default 2).";
                    let base = Parameter::new("base", Factor, about);
                    let multiplier = Parameter::new("multiplier", Factor, "The same as `base`.");
                    [INITIAL, base, multiplier.spelling("base")]
                },
            },
            Self::Fibonacci => &Strategy {
                name: "fibonacci",
                about: "The first delay times 1, 1, 2, 3, 5, …",
                parameters: &[INITIAL],
            },
            Self::Custom { .. } => &Strategy {
                name: "custom",
                about: "These delays, then `max_delay`.",
                parameters: &const {
                    let about = "The delay before retry 1, 2, 3 …";
                    let missing = "its delays: `{custom: {delays: [1s, 5s]}}`";
                    [Parameter::new("delays", Spans, about).required(missing)]
                },
            },
        }
    }

    /// The parameters of this strategy and references to their values.
    pub(crate) fn slots(&mut self) -> Vec<(&'static str, ParameterValue<'_>)> {
        match self {
            Self::Fixed | Self::Fibonacci => vec![],
            Self::Linear { increment } => vec![("increment", ParameterValue::Span(increment))],
            Self::Exponential { base } => vec![("base", ParameterValue::Factor(base))],
            Self::Custom { delays } => vec![("delays", ParameterValue::Spans(delays))],
        }
    }

    /// The strategy's name, as written in a `retry_config`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.strategy().name
    }

    /// Whether the base is exactly 2.
    #[inline]
    pub(crate) const fn doubles(&self) -> bool {
        matches!(self, Self::Exponential { base } if base.to_bits() == 2.0_f64.to_bits())
    }

    /// The delay before this retry in nanoseconds, before cap and jitter. `cap` is used only where a custom
    /// list has no entry.
    pub(crate) fn computed(&self, retry: NonZeroU32, first: u64, cap: u64) -> u64 {
        let earlier = retry.get().saturating_sub(1);
        match self {
            Self::Fixed => first,
            Self::Linear { increment } => {
                first.saturating_add(nanos(*increment).saturating_mul(u64::from(earlier)))
            }
            Self::Exponential { .. } if self.doubles() => doubled(first, retry),
            Self::Exponential { base } => exponential(first, *base, earlier),
            Self::Fibonacci => first.saturating_mul(fibonacci(retry)),
            Self::Custom { delays } => entry(delays, earlier).map_or(cap, nanos),
        }
    }
}

impl RetryConfig {
    /// Always the initial delay.
    #[must_use]
    pub const fn fixed() -> Self {
        Self::with(Some(Backoff::Fixed))
    }

    /// The initial delay, and `increment` more for every further retry.
    #[must_use]
    pub const fn linear(increment: Duration) -> Self {
        Self::with(Some(Backoff::Linear { increment }))
    }

    /// The initial delay, times `base` (at least 1) for every further retry.
    #[must_use]
    pub const fn exponential(base: f64) -> Self {
        Self::with(Some(Backoff::Exponential { base }))
    }

    /// The initial delay times 1, 1, 2, 3, 5 …
    #[must_use]
    pub const fn fibonacci() -> Self {
        Self::with(Some(Backoff::Fibonacci))
    }

    /// These delays, then `max_delay`.
    #[must_use]
    pub const fn custom(delays: &'static [Duration]) -> Self {
        Self::with(Some(Backoff::Custom { delays: Cow::Borrowed(delays) }))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn entry(delays: &[Duration], index: u32) -> Option<Duration> {
    usize::try_from(index).ok().and_then(|index| delays.get(index)).copied()
}

/// Doubling is a shift: exact, and without a power function. An overflow saturates.
#[inline]
pub(crate) fn doubled(first: u64, retry: NonZeroU32) -> u64 {
    let exponent = retry.get().saturating_sub(1);
    if exponent <= first.leading_zeros() && exponent < u64::BITS {
        first << exponent
    } else if first == 0 {
        0
    } else {
        u64::MAX
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "past 2^53 ns (104 days) the last few nanoseconds do not matter"
)]
fn exponential(first: u64, base: f64, exponent: u32) -> u64 {
    if exponent == 0 {
        return first; // Exact, where a float would keep only 53 bits.
    }
    // Not `powi`: its exponent ends at 2^31, and its error of up to n ulp can make a delay shorter than the
    // one before it if the base is close to 1.
    grain::round(first, first as f64 * base.powf(f64::from(exponent)))
}

/// The n-th Fibonacci number, or `u64::MAX` if it is larger.
fn fibonacci(n: NonZeroU32) -> u64 {
    const LAST: usize = 93; // fib(94) no longer fits 64 bits.
    const TABLE: [u64; LAST] = {
        let mut table = [1_u64; LAST];
        let mut n = 2;
        while n < LAST {
            #[expect(clippy::indexing_slicing, reason = "the compiler evaluates it and would refuse")]
            {
                table[n] = table[n.saturating_sub(1)].saturating_add(table[n.saturating_sub(2)]);
            }
            n = n.saturating_add(1);
        }
        table
    };
    usize::try_from(n.get().saturating_sub(1))
        .ok()
        .and_then(|index| TABLE.get(index))
        .copied()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn seconds(backoff: &Backoff, retries: u32) -> Vec<u64> {
        (1..=retries)
            .map(|n| backoff.computed(NonZeroU32::new(n).unwrap(), SECOND, u64::MAX) / SECOND)
            .collect()
    }

    #[test]
    fn fibonacci_ends_at_the_largest_number_instead_of_wrapping() {
        let fib = |n| fibonacci(NonZeroU32::new(n).unwrap());
        assert_eq!(fib(92), 7_540_113_804_746_346_429);
        assert_eq!(fib(93), 12_200_160_415_121_876_738);
        assert_eq!(fib(94), u64::MAX);
        assert_eq!(fib(u32::MAX), u64::MAX);
    }

    #[test]
    fn each_strategy_gives_the_documented_series() {
        let linear = Backoff::Linear { increment: Duration::from_secs(2) };
        assert_eq!(seconds(&Backoff::Fixed, 3), [1, 1, 1]);
        assert_eq!(seconds(&linear, 3), [1, 3, 5]);
        assert_eq!(seconds(&Backoff::DEFAULT, 5), [1, 2, 4, 8, 16]);
        assert_eq!(seconds(&Backoff::Fibonacci, 6), [1, 1, 2, 3, 5, 8]);
    }

    #[test]
    fn every_parameter_of_a_strategy_has_a_slot_and_every_strategy_its_own_name() {
        let mut names = std::collections::BTreeSet::new();
        for strategy in Backoff::ALL {
            let mut one = strategy.clone();
            let kept = one.slots().into_iter().map(|(key, slot)| {
                let kind = match slot {
                    ParameterValue::Span(_) => ParameterKind::Span,
                    ParameterValue::Factor(_) => ParameterKind::Factor,
                    ParameterValue::Spans(_) => ParameterKind::Spans,
                };
                (key, kind)
            });
            let parameters = strategy.strategy().parameters.iter();
            let own = parameters.filter(|it| it.of != Parameter::INITIAL_DELAY);
            let mut own: Vec<_> = own.map(|it| (it.of, it.kind)).collect();
            own.dedup();
            assert_eq!(kept.collect::<Vec<_>>(), own);
            assert!(names.insert(strategy.name()));
        }
    }

    #[test]
    fn a_product_just_below_a_whole_number_is_that_number() {
        // 1.7² is 2.8899999999999997 in floating point.
        let wait = Backoff::Exponential { base: 1.7 }.computed(NonZeroU32::new(3).unwrap(), SECOND, u64::MAX);
        assert_eq!(wait, 2_890_000_000);
    }

    #[test]
    fn an_initial_delay_of_zero_stays_zero() {
        for base in [1.0, 2.0, 3.5, 1e300] {
            let wait = Backoff::Exponential { base }.computed(NonZeroU32::MAX, 0, u64::MAX);
            // 0 × ∞ is NaN, which must become a delay of zero.
            assert_eq!(wait, 0, "base {base}");
        }
    }

    proptest! {
        #[test]
        fn doubling_by_shift_equals_doubling_by_multiplication(
            first in 0_u64..u64::MAX, exponent in 0_u32..200,
        ) {
            let expected = (0..exponent).fold(first, |wait, _| wait.saturating_mul(2));
            let retry = NonZeroU32::MIN.saturating_add(exponent);
            prop_assert_eq!(doubled(first, retry), expected);
        }

        #[test]
        fn a_growing_strategy_never_gives_a_shorter_wait_later(
            initial in 0_u64..100_000_000_000,
            base in prop_oneof![Just(1.0), 1.0..1.01_f64, 1.0..4.0_f64],
            increment in 0_u64..1_000_000_000_000,
            n in 1..u32::MAX,
        ) {
            let increment = Duration::from_nanos(increment);
            for backoff in [
                Backoff::Fixed,
                Backoff::Linear { increment },
                Backoff::Exponential { base },
                Backoff::Fibonacci,
            ] {
                let at = |n| backoff.computed(
                    NonZeroU32::new(n).unwrap(), initial, u64::MAX);
                prop_assert!(at(n) <= at(n + 1));
                let small = n % 200 + 1;
                prop_assert!(at(small) <= at(small + 1));
                prop_assert!(at(1) <= at(2));
            }
        }
    }
}
