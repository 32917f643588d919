//! Randomness that a seed repeats.

use undaunted_policy::{Draws, Seed};

/// A source of random numbers: the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct SeededRandom {
    draws: Draws,
    drawn: u32,
}

impl SeededRandom {
    pub const fn new(seed: u64) -> Self {
        Self::of(Seed(seed).draws(0, 0, 1))
    }

    pub const fn of(draws: Draws) -> Self {
        Self { draws, drawn: 0 }
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        self.draws.between(self.drawn, least, most)
    }

    /// A number below `n`; 0 if there is none.
    pub fn below(&mut self, n: usize) -> usize {
        let last = u64::try_from(n).unwrap_or(u64::MAX).saturating_sub(1);
        usize::try_from(self.between(0, last)).unwrap_or_default()
    }

    /// True in `part` of `whole` cases.
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.between(1, whole.max(1)) <= part
    }

    /// An element of a list; `None` if it is empty.
    pub fn one_of<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }

    /// Start and end of a part of `length` things, at most `most` of them.
    pub fn part(&mut self, length: usize, most: usize) -> (usize, usize) {
        let start = self.below(length.saturating_add(1));
        let left = length.saturating_sub(start);
        let end = start.saturating_add(self.below(most.min(left).saturating_add(1)));
        (start, end)
    }
}

/// Random bytes, faster than one draw each (xorshift).
pub(crate) fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length.saturating_add(8));
    // A state of zero would stay zero.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
