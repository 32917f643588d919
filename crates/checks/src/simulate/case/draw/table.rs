//! Where a case is drawn: the die, and what has been handed out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::act::Script;
use super::super::command::Breaker;
use crate::die::Die;

/// What is drawn, so far.
pub(super) struct Table<'d> {
    pub(super) die: &'d mut Die,
    pub(super) next_label: u32,
    pub(super) breakers: Vec<Breaker>,
    pub(super) scripts: BTreeMap<(u32, String), Script>,
    /// Whether something ends whatever hangs: the deadline of the job or of the item.
    pub(super) is_bounded: bool,
    /// The items that commands are drawn for.
    pub(super) items: Vec<String>,
}

impl<'d> Table<'d> {
    pub(super) fn new(die: &'d mut Die) -> Self {
        Self {
            die,
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

    /// A time between so many milliseconds, an odd number of them.
    pub(super) fn time(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.die.between(least, most) | 1)
    }

    /// A time in so many of a hundred cases.
    pub(super) fn time_in(&mut self, percent: u64, least: u64, most: u64) -> Option<Duration> {
        self.falls(percent).then(|| self.time(least, most))
    }

    /// What happens in so many of a hundred cases.
    pub(super) fn falls(&mut self, percent: u64) -> bool {
        self.die.falls(percent, 100)
    }

    pub(super) fn count(&mut self, least: u32, most: u32) -> u32 {
        let drawn = self.die.between(least.into(), most.into());
        u32::try_from(drawn).unwrap_or(least)
    }

    pub(super) fn one_of<T: Copy>(&mut self, list: &[T], otherwise: T) -> T {
        self.die.one_of(list).copied().unwrap_or(otherwise)
    }
}
