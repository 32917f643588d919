//! Chance that can be repeated.

use undaunted_policy::{Draws, Seed};

/// A die that falls as its draws say.
#[derive(Clone, Debug)]
pub struct Die {
    draws: Draws,
    thrown: u32,
}

impl Die {
    /// The die of a seed: always the same falls.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self::of(Seed(seed).draws(0, 0, 1))
    }

    /// The die of these draws.
    #[must_use]
    pub const fn of(draws: Draws) -> Self {
        Self { draws, thrown: 0 }
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.thrown = self.thrown.wrapping_add(1);
        self.draws.between(self.thrown, least, most)
    }

    /// A number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        let last = u64::try_from(n).unwrap_or(u64::MAX).saturating_sub(1);
        usize::try_from(self.between(0, last)).unwrap_or_default()
    }

    /// Whether something happens that does so in `part` of `whole` cases.
    pub fn falls(&mut self, part: u64, whole: u64) -> bool {
        self.between(1, whole.max(1)) <= part
    }

    /// One of a list.
    pub fn one_of<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }

    /// A part of `length` things, at most `most` of them: where it begins, and where it ends.
    pub fn part(&mut self, length: usize, most: usize) -> (usize, usize) {
        let start = self.below(length.saturating_add(1));
        let left = length.saturating_sub(start);
        let end = start.saturating_add(self.below(most.min(left).saturating_add(1)));
        (start, end)
    }
}
