//! What is looked at for one seed: its job in a calm world, and all of its jobs in a storm.

use super::model::compare::{Verdict, judged};
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
    /// Whether the model cannot say what must come of it.
    pub open: bool,
    /// The first thing that does not hold.
    pub finding: Option<Finding>,
}

/// Simulates what a seed stands for.
#[must_use]
pub fn of_seed(seed: u64) -> Seen {
    let plan = Plan::of(seed);
    let mut came = Seen::default();
    for is_calm in [true, false] {
        let outcome = simulated(&plan, is_calm, false);
        came.open |= outcome.is_open;
        came.events = came.events.saturating_add(outcome.events);
        came.crashes = came.crashes.saturating_add(outcome.crashes);
        let first = outcome.found.into_iter().next();
        let found = first.map(|what| Finding { what, is_calm });
        came.finding = came.finding.or(found);
    }
    came
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

/// A panic is a finding like any other: it is repeated and shrunk.
fn simulated(plan: &Plan, is_calm: bool, with_history: bool) -> Outcome {
    let simulated = std::panic::catch_unwind(|| in_world(plan, is_calm, with_history));
    simulated.unwrap_or_else(|_| Outcome {
        found: vec!["the code panics, as told above".to_owned()],
        ..Outcome::default()
    })
}

fn in_world(plan: &Plan, is_calm: bool, with_history: bool) -> Outcome {
    if !is_calm {
        return run(plan, with_history);
    }
    let calm = plan.calm();
    let mut outcome = run(&calm, with_history);
    let (Some(case), true) = (calm.cases.first(), outcome.found.is_empty()) else {
        return outcome;
    };
    for (job, records) in &outcome.jobs {
        match judged(case, job, records) {
            Verdict::Same => {}
            Verdict::Open(_) => outcome.is_open = true,
            Verdict::Different(found) => {
                let found = found.join("; ");
                outcome.found.push(format!("the model foretells something else: {found}"));
            }
        }
    }
    outcome
}
