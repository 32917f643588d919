//! What is checked for one seed: its first job in a calm world, and all its jobs with faults.

use super::model::compare::{ModelComparison, compare_run};
use super::plan::SimPlan;
use super::run::{SimOutcome, run};

/// A violation, in a calm world or with faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimFinding {
    pub what: String,
    pub is_calm: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedResult {
    pub events: u64,
    pub crashes: u64,
    pub is_unspecified: bool,
    pub finding: Option<SimFinding>,
}

pub fn check_seed(seed: u64) -> SeedResult {
    let plan = SimPlan::of(seed);
    let mut result = SeedResult::default();
    for is_calm in [true, false] {
        let outcome = simulated(&plan, is_calm, false);
        result.is_unspecified |= outcome.is_unspecified;
        result.events += outcome.events;
        result.crashes += outcome.crashes;
        let first = outcome.violations.into_iter().next();
        let finding = first.map(|what| SimFinding { what, is_calm });
        result.finding = result.finding.or(finding);
    }
    result
}

/// The first violation of a plan.
pub(super) fn find_violation(plan: &SimPlan, is_calm: bool) -> Option<SimFinding> {
    let outcome = simulated(plan, is_calm, false);
    let what = outcome.violations.into_iter().next()?;
    Some(SimFinding { what, is_calm })
}

/// The history of a simulation, line by line.
pub(super) fn history(plan: &SimPlan, is_calm: bool) -> Vec<String> {
    simulated(plan, is_calm, true).history
}

/// A panic is a violation like any other: it is repeated and shrunk.
fn simulated(plan: &SimPlan, is_calm: bool, with_history: bool) -> SimOutcome {
    let simulated = std::panic::catch_unwind(|| compare(plan, is_calm, with_history));
    simulated.unwrap_or_else(|_| SimOutcome {
        violations: vec!["the code panicked; the message is above".to_owned()],
        ..SimOutcome::default()
    })
}

fn compare(plan: &SimPlan, is_calm: bool, with_history: bool) -> SimOutcome {
    if !is_calm {
        return run(plan, with_history);
    }
    let calm = plan.calm();
    let mut outcome = run(&calm, with_history);
    let (Some(case), true) = (calm.cases.first(), outcome.violations.is_empty()) else {
        return outcome;
    };
    for (job, records) in &outcome.jobs {
        match compare_run(case, job, records) {
            ModelComparison::Same => {}
            ModelComparison::Unspecified(_) => outcome.is_unspecified = true,
            ModelComparison::Different(violations) => {
                let violations = violations.join("; ");
                outcome.violations.push(format!("the model foretells something else: {violations}"));
            }
        }
    }
    outcome
}

/// How many smaller plans are tried while a user waits.
const TRIES: usize = 600;

/// A smaller plan with a violation, and that violation.
pub(super) fn shrink(plan: &SimPlan, finding: SimFinding) -> (SimPlan, SimFinding) {
    let (mut plan, mut finding) = (plan.clone(), finding);
    let mut tries = 0_usize;
    'smaller: loop {
        for candidate in plan.smaller() {
            tries += 1;
            if tries > TRIES {
                return (plan, finding);
            }
            if let Some(violations) = find_violation(&candidate, finding.is_calm) {
                (plan, finding) = (candidate, violations);
                continue 'smaller;
            }
        }
        return (plan, finding);
    }
}
