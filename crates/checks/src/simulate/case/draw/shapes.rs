//! Drawn cases as a whole.

use std::time::Duration;

use super::super::whole::{Case, Completion, Map, Shape, Tolerance};
use super::table::Table;
use crate::die::Die;

impl Case {
    /// The case that a die shows.
    pub fn drawn(die: &mut Die) -> Self {
        let mut table = Table::new(die);
        let deadline = table.time_in(15, 3000, 60_000);
        let pool = table.falls(35).then(|| table.count(1, 8));
        let cap = table.falls(20).then(|| table.count(1, 4));
        let retry = table.falls(25).then(|| table.outer_retry());
        table.draw_breakers();
        let is_flow = table.falls(15);
        // A job's deadline ends what hangs, and hanging until then is all right once.
        table.is_bounded = deadline.is_some();
        let shape = match table.die.below(4) {
            _ if is_flow => Shape::Flow(table.flow()),
            0 => Shape::List(table.commands(1, 4)),
            _ => Shape::Map(Box::new(table.map())),
        };
        Self {
            deadline,
            pool,
            share: cap,
            // What a flow retries, its steps say themselves.
            retry: retry.filter(|_| !is_flow),
            breakers: table.breakers,
            shape,
            scripts: table.scripts,
        }
    }
}

impl Table<'_> {
    fn map(&mut self) -> Map {
        let setup = if self.falls(25) { self.commands(1, 2) } else { Vec::new() };
        let reduce = if self.falls(40) { self.commands(1, 2) } else { Vec::new() };
        let limit = self.falls(20).then(|| self.die.between(2, 30));
        let item_deadline = limit.map(Duration::from_secs);
        let count = if self.falls(8) { self.die.between(9, 13) } else { self.die.between(1, 8) };
        let items: Vec<String> = (0..count).map(|number| format!("a{number}")).collect();
        let was_bounded = self.is_bounded;
        self.is_bounded = was_bounded || item_deadline.is_some();
        self.items.clone_from(&items);
        let commands = self.commands(1, if count > 4 { 2 } else { 3 });
        Map {
            setup,
            commands,
            reduce,
            items,
            items_by_shell: self.falls(20),
            width: self.count(1, 4),
            item_deadline,
            timeout_retry: self.falls(10).then(|| self.outer_retry()),
            policy_retry: self.falls(30).then(|| self.outer_retry()),
            tolerance: self.tolerance(),
            completion: self.falls(20).then(|| self.completion()),
        }
    }

    fn tolerance(&mut self) -> Tolerance {
        let mut tolerance = Tolerance::default();
        match self.die.below(12) {
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

    fn completion(&mut self) -> Completion {
        let min = self.falls(80).then(|| self.count(0, 5));
        let deadline = self.falls(60).then(|| self.die.between(1, 30));
        Completion { min, deadline: deadline.map(Duration::from_secs), leaves: self.falls(30) }
    }
}
