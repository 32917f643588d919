//! Jitter: spreads delays, so that items that failed together are not retried together.
//!
//! Takes a computed and capped delay and a draw, and returns the delay to use. The draw is an argument
//! (`draw.rs`): the same draw gives the same delay on every machine.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::draw::Draws;
use crate::grain;
use crate::timestamp::nanos;

/// How a delay is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// No spread: the delay is used as it is.
    #[default]
    None,
    /// The delay times a number drawn uniformly from 1−`factor` to 1+`factor`. The result may exceed the
    /// cap by that factor, because the cap is applied first.
    PlusMinus {
        /// From 0 (no spread) to 1 (from zero to twice the delay).
        factor: f64,
    },
    /// Uniform from zero to the delay.
    Full,
    /// Uniform from half of the delay to the delay.
    Equal,
    /// Uniform from the initial delay to three times the previous delay, then capped. The backoff strategy
    /// is not used.
    Decorrelated,
}

impl Jitter {
    /// The factor of `jitter: true` if `jitter_factor` is missing.
    pub const DEFAULT_FACTOR: f64 = 0.3;

    /// The factor of [`Jitter::PlusMinus`] in fixed point with 63 fractional bits, which hold the 53 bits of
    /// a float exactly.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "2^63 is exact, and a factor from 0 to 1 is a number from 0 to that"
    )]
    pub(crate) const fn fixed_point_factor(self) -> u64 {
        const ONE: f64 = (1_u64 << 63) as f64;
        match self {
            Self::PlusMinus { factor } => (factor * ONE) as u64,
            _ => 0,
        }
    }

    /// Spreads a capped delay, in nanoseconds. `factor` is the result of [`Jitter::fixed_point_factor`], converted from
    /// a float once for each policy instead of once for each delay.
    #[inline]
    pub(crate) fn spread(self, delay: u64, factor: u64, retry: NonZeroU32, draws: Draws) -> u64 {
        let between = |low, high| draw(low, high, delay, retry, draws);
        match self {
            Self::None | Self::Decorrelated => delay,
            Self::Full => between(0, delay),
            Self::Equal => between(delay.div_ceil(2), delay),
            Self::PlusMinus { .. } => {
                let (low, high) = band(delay, factor);
                between(low, high)
            }
        }
    }
}

/// A delay between the initial one and three times the previous one, before the cap.
#[inline(never)]
pub(crate) fn decorrelated(initial: u64, previous: Option<Duration>, retry: NonZeroU32, draws: Draws) -> u64 {
    let high = previous.map_or(initial, nanos).saturating_mul(3).max(initial);
    draw(initial, high, high, retry, draws)
}

/// The range from `middle` minus to `middle` plus `part`, rounded.
#[expect(clippy::cast_possible_truncation, reason = "a part of a 64-bit number is a 64-bit number")]
#[inline]
const fn band(middle: u64, part: u64) -> (u64, u64) {
    const HALF: u128 = 1 << 62;
    let product = (middle as u128).wrapping_mul(part as u128);
    let reach = (product.wrapping_add(HALF) >> 63) as u64;
    (middle.saturating_sub(reach), middle.saturating_add(reach))
}

/// A uniform draw from `low..=high`, in whole milliseconds if `size` is a multiple of them and the range is
/// wide enough. The step is a constant, because dividing by a variable costs ten times as much.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: for full jitter, `low` is then known to be 0")]
fn draw(low: u64, high: u64, size: u64, retry: NonZeroU32, draws: Draws) -> u64 {
    let wide = high.wrapping_sub(low) >= grain::MILLIS_FROM;
    if wide && size.is_multiple_of(grain::MILLI) && high < LAST {
        let first = low.wrapping_add(grain::MILLI - 1) / grain::MILLI;
        let last = high / grain::MILLI;
        return draws.between(retry.get(), first, last).wrapping_mul(grain::MILLI);
    }
    draw_finely(low, high, size, retry, draws)
}

/// A delay below this can be rounded up without overflow.
const LAST: u64 = u64::MAX - grain::MILLI;

#[inline(never)]
fn draw_finely(low: u64, high: u64, size: u64, retry: NonZeroU32, draws: Draws) -> u64 {
    let wide = high.saturating_sub(low) >= grain::MICROS_FROM;
    if wide && size.is_multiple_of(grain::MICRO) && high < LAST {
        let (first, last) = (low.div_ceil(grain::MICRO), high / grain::MICRO);
        draws.between(retry.get(), first, last).saturating_mul(grain::MICRO)
    } else {
        draws.between(retry.get(), low, high)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::draw::Seed;

    const FIRST: NonZeroU32 = NonZeroU32::MIN;

    fn spread(jitter: Jitter, delay: Duration, retry: NonZeroU32, draws: Draws) -> Duration {
        Duration::from_nanos(jitter.spread(nanos(delay), jitter.fixed_point_factor(), retry, draws))
    }

    fn drawn(jitter: Jitter, delay: Duration, seeds: u64) -> (Duration, Duration) {
        let all = (0..seeds).map(|s| spread(jitter, delay, FIRST, Seed(s).draws(0, 0, 1)));
        all.fold((Duration::MAX, Duration::ZERO), |(low, high), wait| (low.min(wait), high.max(wait)))
    }

    #[test]
    fn each_band_is_used_from_end_to_end() {
        let second = Duration::from_secs(1);
        let millis = |low, high| (Duration::from_millis(low), Duration::from_millis(high));
        let plus_minus = Jitter::PlusMinus { factor: 0.3 };
        assert_eq!(drawn(plus_minus, second, 20_000), millis(700, 1300));
        assert_eq!(drawn(Jitter::Full, second, 20_000), millis(0, 1000));
        assert_eq!(drawn(Jitter::Equal, second, 20_000), millis(500, 1000));
    }

    #[test]
    fn a_band_too_narrow_for_whole_milliseconds_is_still_drawn_from() {
        let delay = Duration::from_micros(10_500);
        let (low, high) = drawn(Jitter::PlusMinus { factor: 0.01 }, delay, 20_000);
        assert_eq!((low, high), (Duration::from_micros(10_395), Duration::from_micros(10_605)));
        let (low, high) = drawn(Jitter::PlusMinus { factor: 0.01 }, Duration::from_millis(50), 20_000);
        assert_eq!((low, high), (Duration::from_micros(49_500), Duration::from_micros(50_500)));
    }

    #[test]
    fn a_spread_delay_may_pass_the_cap_that_was_applied_before() {
        let pace = crate::RetryConfig::fixed().jitter(crate::JitterMode::PlusMinus);
        let policy = pace.max_delay(Duration::from_millis(500)).build().unwrap();
        let at = |seed| policy.terms().pace().delay(FIRST, None, Seed(seed).draws(0, 0, 1)).drawn;
        let longest = (0..5_000).map(at).max();
        assert_eq!(longest, Some(Duration::from_millis(650)));
    }

    #[test]
    fn decorrelated_jitter_uses_its_range_from_end_to_end() {
        let second = 1_000_000_000;
        let wait = |seed| decorrelated(second, None, FIRST, Seed(seed).draws(0, 0, 1));
        let waits: Vec<_> = (0..50_000).map(wait).collect();
        assert_eq!(waits.iter().min(), Some(&second));
        assert_eq!(waits.iter().max(), Some(&(3 * second)));
    }

    #[test]
    fn a_factor_of_zero_changes_nothing() {
        let delay = Duration::from_nanos(123_456_789);
        let none = Jitter::PlusMinus { factor: 0.0 };
        assert_eq!(drawn(none, delay, 100), (delay, delay));
    }

    proptest! {
        #[test]
        fn plus_minus_stays_in_its_band(delay: u64, factor in 0.0..=1.0_f64, seed: u64, n in 1_u32..) {
            let retry = NonZeroU32::new(n).unwrap();
            let jitter = Jitter::PlusMinus { factor };
            let wait = jitter.spread(delay, jitter.fixed_point_factor(), retry, Seed(seed).draws(0, 0, 1));
            let (low, high) = band(delay, jitter.fixed_point_factor());
            prop_assert!((low..=high).contains(&wait));
        }

        #[test]
        fn full_and_equal_never_pass_the_delay(delay: u64, seed: u64, n in 1_u32..) {
            let retry = NonZeroU32::new(n).unwrap();
            let draws = Seed(seed).draws(0, 0, 1);
            let whole = Duration::from_nanos(delay);
            prop_assert!(spread(Jitter::Full, whole, retry, draws) <= whole);
            let equal = spread(Jitter::Equal, whole, retry, draws);
            prop_assert!(equal <= whole && nanos(equal) >= delay / 2);
        }

        #[test]
        fn decorrelated_lies_between_the_initial_delay_and_three_times_the_last(
            initial in 0_u64..1 << 40, previous in 0_u64..1 << 40, seed: u64,
        ) {
            let draws = Seed(seed).draws(0, 0, 1);
            let wait = decorrelated(initial, Some(Duration::from_nanos(previous)), FIRST, draws);
            prop_assert!(wait >= initial && wait <= initial.max(previous * 3));
        }
    }
}
