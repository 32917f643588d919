//! Generates cases from a random source.
//!
//! Times are whole milliseconds without a common divisor, so that two things rarely happen at the same
//! instant, for which no order is specified. Cases are small: a few items, a few failures each, and nothing
//! runs for ever unless something ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::command::CaseBreaker;
use super::job_case::AttemptScript;
use crate::random::SeededRandom;

mod commands;
mod flows;
mod retries;
mod scripts;
mod shapes;

/// The case generated so far.
pub(super) struct CaseGenerator<'d> {
    pub(super) random: &'d mut SeededRandom,
    pub(super) next_label: u32,
    pub(super) breakers: Vec<CaseBreaker>,
    pub(super) scripts: BTreeMap<(u32, String), AttemptScript>,
    /// Whether a deadline of the job or of the item ends what hangs.
    pub(super) is_bounded: bool,
    /// The items for which commands are generated.
    pub(super) items: Vec<String>,
}

impl<'d> CaseGenerator<'d> {
    pub(super) fn new(random: &'d mut SeededRandom) -> Self {
        Self {
            random,
            next_label: 0,
            breakers: Vec::new(),
            scripts: BTreeMap::new(),
            is_bounded: false,
            items: vec![String::new()],
        }
    }

    pub(super) fn label(&mut self) -> u32 {
        let label = self.next_label;
        self.next_label = label.saturating_add(1);
        label
    }

    /// An odd number of milliseconds.
    pub(super) fn time(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.random.between(least, most) | 1)
    }

    /// A time in this percentage of cases.
    pub(super) fn time_in(&mut self, percent: u64, least: u64, most: u64) -> Option<Duration> {
        self.chance(percent).then(|| self.time(least, most))
    }

    /// True in this percentage of cases.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.random.chance(percent, 100)
    }

    pub(super) fn count(&mut self, least: u32, most: u32) -> u32 {
        let drawn = self.random.between(least.into(), most.into());
        u32::try_from(drawn).unwrap_or(least)
    }

    pub(super) fn one_of<T: Copy>(&mut self, list: &[T], otherwise: T) -> T {
        self.random.one_of(list).copied().unwrap_or(otherwise)
    }
}
