//! Spreading waits, so that what failed together does not come back together.
//!
//! Takes a delay that is already computed and capped and a draw, and gives the delay to use. The
//! random number is an argument (`draw.rs`): the same draw gives the same delay, on every machine.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::draw::Draws;
use crate::grain;
use crate::timestamp::nanos;

/// How a delay is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// Multiplied by a factor drawn uniformly from 1−`factor` to 1+`factor`. The result may pass
    /// the cap by that factor: capping comes first.
    PlusMinus {
        /// From 0 (no spread) to 1 (from nothing to twice the delay).
        factor: f64,
    },
    /// Anything from nothing to the delay.
    Full,
    /// Half of the delay, and anything up to the other half.
    Equal,
    /// Anything from the initial delay to three times the previous wait, capped last. The strategy
    /// is not asked.
    Decorrelated,
}

impl Jitter {
    /// The factor used when jitter is switched on and nothing else is said.
    pub const DEFAULT_FACTOR: f64 = 0.3;

    /// The part of a delay that [`Jitter::PlusMinus`] may add or take away, in fixed point. A factor
    /// has 53 bits, so that 63 behind the point hold it exactly.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "2^63 is exact, and a factor from 0 to 1 is a number from 0 to that"
    )]
    pub(crate) const fn part(self) -> u64 {
        const ONE: f64 = (1_u64 << 63) as f64;
        match self {
            Self::PlusMinus { factor } => (factor * ONE) as u64,
            _ => 0,
        }
    }

    /// Spreads a capped delay, in nanoseconds. `part` is what [`Jitter::part`] gives: a float is
    /// turned into a number once for a policy, and not once for a delay.
    #[inline]
    pub(crate) fn spread(self, delay: u64, part: u64, retry: NonZeroU32, draws: Draws) -> u64 {
        let between = |low, high| draw(low, high, delay, retry, draws);
        match self {
            Self::None | Self::Decorrelated => delay,
            Self::Full => between(0, delay),
            Self::Equal => between(delay.div_ceil(2), delay),
            Self::PlusMinus { .. } => {
                let (low, high) = band(delay, part);
                between(low, high)
            }
        }
    }
}

/// A wait between the initial delay and three times the previous one, before its cap.
#[inline(never)]
pub(crate) fn decorrelated(initial: u64, previous: Option<Duration>, retry: NonZeroU32, draws: Draws) -> u64 {
    let high = previous.map_or(initial, nanos).saturating_mul(3).max(initial);
    draw(initial, high, high, retry, draws)
}

/// A part of the delay to either side of it, rounded.
#[expect(clippy::cast_possible_truncation, reason = "a part of a 64-bit number is a 64-bit number")]
#[inline]
const fn band(middle: u64, part: u64) -> (u64, u64) {
    const HALF: u128 = 1 << 62;
    let product = (middle as u128).wrapping_mul(part as u128);
    let reach = (product.wrapping_add(HALF) >> 63) as u64;
    (middle.saturating_sub(reach), middle.saturating_add(reach))
}

/// A uniform draw from `low..=high`, in whole milliseconds where the delay is made of them and the
/// range holds enough. Division by a constant is a multiplication; by a variable it costs ten times
/// that.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: for full jitter, half of it is then known to be nothing")]
fn draw(low: u64, high: u64, size: u64, retry: NonZeroU32, draws: Draws) -> u64 {
    let wide = high.wrapping_sub(low) >= grain::COARSE;
    if wide && size.is_multiple_of(grain::MILLI) && high < LAST {
        let first = low.wrapping_add(grain::MILLI - 1) / grain::MILLI;
        let last = high / grain::MILLI;
        return draws.between(retry.get(), first, last).wrapping_mul(grain::MILLI);
    }
    draw_finely(low, high, size, retry, draws)
}

/// Up to here a delay can be rounded up.
const LAST: u64 = u64::MAX - grain::MILLI;

#[inline(never)]
fn draw_finely(low: u64, high: u64, size: u64, retry: NonZeroU32, draws: Draws) -> u64 {
    let wide = high.saturating_sub(low) >= grain::FINE;
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
        Duration::from_nanos(jitter.spread(nanos(delay), jitter.part(), retry, draws))
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
        let at = |seed| policy.terms().delay_policy().delay(FIRST, None, Seed(seed).draws(0, 0, 1)).drawn;
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
            let wait = jitter.spread(delay, jitter.part(), retry, Seed(seed).draws(0, 0, 1));
            let (low, high) = band(delay, jitter.part());
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
