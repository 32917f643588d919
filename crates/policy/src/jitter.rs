//! Spreading waits, so that what failed together does not come back together.
//!
//! Takes a delay that is already computed and capped and a draw, and gives the delay to use. The
//! random number is an argument (`draw.rs`): the same draw gives the same delay, on every machine.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::draw::Draws;
use crate::grain::grain;
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

    /// Spreads a capped delay.
    #[inline]
    pub(crate) fn spread(self, delay: Duration, retry: NonZeroU32, draws: Draws) -> Duration {
        let middle = nanos(delay);
        let (low, high) = match self {
            Self::None | Self::Decorrelated => return delay,
            Self::PlusMinus { factor } => band(middle, factor),
            Self::Full => (0, middle),
            Self::Equal => (middle.div_ceil(2), middle),
        };
        Duration::from_nanos(draw(low, high, grain(middle), retry, draws))
    }
}

/// A wait between the initial delay and three times the previous one, before its cap.
pub(crate) fn decorrelated(
    initial: Duration,
    previous: Option<Duration>,
    retry: NonZeroU32,
    draws: Draws,
) -> Duration {
    let low = nanos(initial);
    let high = nanos(previous.unwrap_or(initial))
        .saturating_mul(3)
        .max(low);
    Duration::from_nanos(draw(low, high, grain(high), retry, draws))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of the delay is not negative and fits, and rounding is what is wanted"
)]
fn band(middle: u64, factor: f64) -> (u64, u64) {
    let reach = (middle as f64 * factor).round() as u64;
    (middle.saturating_sub(reach), middle.saturating_add(reach))
}

/// A uniform draw from `low..=high`, in whole steps where the range holds any.
#[inline]
fn draw(low: u64, high: u64, step: u64, retry: NonZeroU32, draws: Draws) -> u64 {
    let (first, last) = match step {
        // Division by a constant is a multiplication; by a variable it costs ten times that.
        1_000_000 => (low.div_ceil(1_000_000), high / 1_000_000),
        1_000 => (low.div_ceil(1_000), high / 1_000),
        _ => return draws.between(retry.get(), low, high),
    };
    if first > last {
        return draws.between(retry.get(), low, high);
    }
    draws.between(retry.get(), first, last).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::draw::Seed;

    const FIRST: NonZeroU32 = NonZeroU32::MIN;

    fn drawn(jitter: Jitter, delay: Duration, seeds: u64) -> (Duration, Duration) {
        let all = (0..seeds).map(|s| jitter.spread(delay, FIRST, Seed(s).draws(0, 0, 1)));
        all.fold((Duration::MAX, Duration::ZERO), |(low, high), wait| {
            (low.min(wait), high.max(wait))
        })
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
        let (low, high) = drawn(Jitter::PlusMinus { factor: 0.01 }, delay, 1_000);
        assert!(low < delay && delay < high, "{low:?} {high:?}");
        assert!(low >= Duration::from_micros(10_395) && high <= Duration::from_micros(10_605));
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
            let wait = Jitter::PlusMinus { factor }
                .spread(Duration::from_nanos(delay), retry, Seed(seed).draws(0, 0, 1));
            let (low, high) = band(delay, factor);
            prop_assert!((low..=high).contains(&nanos(wait)));
        }

        #[test]
        fn full_and_equal_never_pass_the_delay(delay: u64, seed: u64, n in 1_u32..) {
            let retry = NonZeroU32::new(n).unwrap();
            let draws = Seed(seed).draws(0, 0, 1);
            let whole = Duration::from_nanos(delay);
            prop_assert!(Jitter::Full.spread(whole, retry, draws) <= whole);
            let equal = Jitter::Equal.spread(whole, retry, draws);
            prop_assert!(equal <= whole && nanos(equal) >= delay / 2);
        }

        #[test]
        fn decorrelated_lies_between_the_initial_delay_and_three_times_the_last(
            initial in 0_u64..1 << 40, previous in 0_u64..1 << 40, seed: u64,
        ) {
            let wait = nanos(decorrelated(
                Duration::from_nanos(initial),
                Some(Duration::from_nanos(previous)),
                FIRST,
                Seed(seed).draws(0, 0, 1),
            ));
            prop_assert!(wait >= initial && wait <= initial.max(previous * 3));
        }
    }
}
