//! What is looked at for one seed: its job in a calm world, and all of its jobs in a storm.

use super::plan::Plan;
use super::run::{Outcome, run};

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: String,
    /// Whether it does not hold even in a calm world.
    pub is_calm: bool,
}

/// What came of a seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many records there were.
    pub events: u64,
    /// How often something died.
    pub crashes: u64,
    /// The first thing that does not hold.
    pub finding: Option<Finding>,
}

/// Simulates what a seed stands for.
#[must_use]
pub fn of_seed(seed: u64) -> Seen {
    let plan = Plan::of(seed);
    let mut seen = Seen::default();
    for is_calm in [true, false] {
        let outcome = simulated(&plan, is_calm, false);
        seen.events = seen.events.saturating_add(outcome.events);
        seen.crashes = seen.crashes.saturating_add(outcome.crashes);
        let first = outcome.found.into_iter().next();
        let found = first.map(|what| Finding { what, is_calm });
        seen.finding = seen.finding.or(found);
    }
    seen
}

/// Simulates a plan in one of the two worlds. What does not hold, if anything.
#[must_use]
pub(super) fn look_at(plan: &Plan, is_calm: bool) -> Option<Finding> {
    let outcome = simulated(plan, is_calm, false);
    let what = outcome.found.into_iter().next()?;
    Some(Finding { what, is_calm })
}

/// What happens when a plan is simulated, line by line.
#[must_use]
pub(super) fn history(plan: &Plan, is_calm: bool) -> Vec<String> {
    simulated(plan, is_calm, true).history
}

fn simulated(plan: &Plan, is_calm: bool, with_history: bool) -> Outcome {
    if is_calm {
        run(&plan.calm(), with_history)
    } else {
        run(plan, with_history)
    }
}
