//! Pseudo-random draws, computed as a hash.
//!
//! The draw for a retry depends only on the job's seed, the item, the command, the round and the retry
//! number. There is no generator whose state a crash could lose, and a schedule can be printed before it is
//! run. The hash function is part of the stored format: changing it would change the meaning of `--seed`
//! (a test pins its values).

/// The seed of a job. All its draws are derived from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Seed(pub u64);

impl Seed {
    /// The draws of one command of one item in one round.
    #[inline]
    #[must_use]
    pub const fn draws(self, item: u64, command: u64, round: u32) -> Draws {
        let place = mix(mix(mix(self.0) ^ item) ^ command);
        Draws(mix(place ^ round as u64))
    }
}

/// The series of draws of one command in one round, one for each retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Draws(u64);

impl Draws {
    /// Returns the draw for this retry, uniform over all 64-bit numbers.
    #[inline]
    #[must_use]
    pub const fn at(self, retry: u32) -> u64 {
        mix(self.0.wrapping_add(GOLDEN.wrapping_mul(retry as u64)))
    }

    /// Returns the draw for this retry, uniform over `low..=high` (`low` if that is empty).
    #[inline]
    #[must_use]
    pub const fn between(self, retry: u32, low: u64, high: u64) -> u64 {
        // The upper half of the product maps 2^64 draws evenly onto the range; the bias is less than
        // one part in 2^64 / range. `draw × (range + 1)` is written as a sum, so that no step needs more
        // than 128 bits.
        let (range, drawn) = (high.saturating_sub(low) as u128, self.at(retry) as u128);
        let offset = (range.wrapping_mul(drawn).wrapping_add(drawn) >> 64) as u64;
        low.saturating_add(offset)
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of `SplitMix64`: every bit of the input moves about half of the output.
const fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(GOLDEN);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_draws_of_a_seed_never_change() {
        let draws = Seed(42).draws(0, 0, 1);
        assert_eq!(
            [draws.at(1), draws.at(2), draws.at(u32::MAX)],
            [9_159_583_706_515_542_917, 9_804_529_876_730_095_508, 17_274_290_716_780_079_974]
        );
    }

    #[test]
    fn every_value_of_a_small_range_is_drawn_about_equally_often() {
        let mut seen = [0_u32; 10];
        for seed in 0..100_000 {
            let drawn = Seed(seed).draws(7, 1, 2).between(3, 5, 14);
            seen[usize::try_from(drawn - 5).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&times| (9_500..10_500).contains(&times)), "{seen:?}");
    }

    proptest! {
        #[test]
        fn a_draw_lies_in_its_range(key: u64, retry: u32, a: u64, b: u64) {
            let (low, high) = (a.min(b), a.max(b));
            let drawn = Draws(key).between(retry, low, high);
            prop_assert!((low..=high).contains(&drawn));
        }

        #[test]
        fn each_coordinate_matters(seed: u64, item: u64, command: u64, round: u32, retry: u32) {
            let here = Seed(seed).draws(item, command, round).at(retry);
            prop_assert_ne!(here, Seed(seed ^ 1).draws(item, command, round).at(retry));
            prop_assert_ne!(here, Seed(seed).draws(item ^ 1, command, round).at(retry));
            prop_assert_ne!(here, Seed(seed).draws(item, command ^ 1, round).at(retry));
            prop_assert_ne!(here, Seed(seed).draws(item, command, round ^ 1).at(retry));
            prop_assert_ne!(here, Seed(seed).draws(item, command, round).at(retry ^ 1));
        }
    }
}
