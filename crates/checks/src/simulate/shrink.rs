//! From a violation to the smallest simulation that shows it.

use super::plan::Plan;
use super::seed::{Finding, look_at};

/// How many smaller plans are tried: what is found is to be read by people, and they wait.
const TRIES: usize = 600;

/// A smaller plan that goes wrong too, and what goes wrong then.
#[must_use]
pub(super) fn shrink(plan: &Plan, finding: Finding) -> (Plan, Finding) {
    let (mut plan, mut finding) = (plan.clone(), finding);
    let mut tries = 0_usize;
    'smaller: loop {
        for candidate in plan.smaller() {
            tries = tries.saturating_add(1);
            if tries > TRIES {
                return (plan, finding);
            }
            if let Some(found) = look_at(&candidate, finding.is_calm) {
                (plan, finding) = (candidate, found);
                continue 'smaller;
            }
        }
        return (plan, finding);
    }
}
