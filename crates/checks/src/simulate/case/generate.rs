//! Generates cases from a random source.
//!
//! Times are whole milliseconds without a common divisor, so that two things rarely happen at the same
//! instant, for which no order is specified. Cases are small: a few items, a few failures each, and nothing
//! runs for ever unless something ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::command::CaseBreaker;
use super::job_case::{AttemptScript, CaseCompletion, CaseMap, CaseShape, CaseTolerance, JobCase};
use crate::random::SeededRandom;

mod commands;
mod flows;
mod retries;

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

impl JobCase {
    /// Generates a case.
    pub fn drawn(random: &mut SeededRandom) -> Self {
        let mut generator = CaseGenerator::new(random);
        let deadline = generator.time_in(15, 3000, 60_000);
        let pool = generator.chance(35).then(|| generator.count(1, 8));
        let cap = generator.chance(20).then(|| generator.count(1, 4));
        let retry = generator.chance(25).then(|| generator.outer_retry());
        generator.draw_breakers();
        let is_flow = generator.chance(15);
        // A deadline of the job ends what hangs.
        generator.is_bounded = deadline.is_some();
        let shape = match generator.random.below(4) {
            _ if is_flow => CaseShape::Flow(generator.flow()),
            0 => CaseShape::List(generator.commands(1, 4)),
            _ => CaseShape::Map(Box::new(generator.map())),
        };
        Self {
            deadline,
            pool,
            share: cap,
            // The steps of a flow set their own retries.
            retry: retry.filter(|_| !is_flow),
            breakers: generator.breakers,
            shape,
            scripts: generator.scripts,
        }
    }
}

impl CaseGenerator<'_> {
    fn map(&mut self) -> CaseMap {
        let setup = if self.chance(25) { self.commands(1, 2) } else { Vec::new() };
        let reduce = if self.chance(40) { self.commands(1, 2) } else { Vec::new() };
        let limit = self.chance(20).then(|| self.random.between(2, 30));
        let item_deadline = limit.map(Duration::from_secs);
        let count = if self.chance(8) { self.random.between(9, 13) } else { self.random.between(1, 8) };
        let items: Vec<String> = (0..count).map(|number| format!("a{number}")).collect();
        let was_bounded = self.is_bounded;
        self.is_bounded = was_bounded || item_deadline.is_some();
        self.items.clone_from(&items);
        let commands = self.commands(1, if count > 4 { 2 } else { 3 });
        CaseMap {
            setup,
            commands,
            reduce,
            items,
            items_by_shell: self.chance(20),
            width: self.count(1, 4),
            item_deadline,
            timeout_retry: self.chance(10).then(|| self.outer_retry()),
            policy_retry: self.chance(30).then(|| self.outer_retry()),
            tolerance: self.tolerance(),
            completion: self.chance(20).then(|| self.completion()),
        }
    }

    fn tolerance(&mut self) -> CaseTolerance {
        let mut tolerance = CaseTolerance::default();
        match self.random.below(12) {
            0 => tolerance.first_stops = true,
            1 => tolerance.max_failures = Some(self.count(1, 3)),
            2 | 3 => tolerance.share_percent = Some(self.count(5, 60)),
            4 => tolerance.on_item_failure = Some("skip"),
            5 => tolerance.on_item_failure = Some("retry"),
            6 => tolerance.on_item_failure = Some("stop"),
            7 => tolerance.on_item_failure = Some("dlq"),
            _ => {}
        }
        tolerance
    }

    fn completion(&mut self) -> CaseCompletion {
        let min = self.chance(80).then(|| self.count(0, 5));
        let deadline = self.chance(60).then(|| self.random.between(1, 30));
        CaseCompletion { min, deadline: deadline.map(Duration::from_secs), leaves: self.chance(30) }
    }
}
