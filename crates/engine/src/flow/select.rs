//! Which of many registered steps a flow may come to need.
//!
//! More than its plan has: who gives an attribute is decided when the flow runs, and a step that is a
//! flow of its own is planned when it begins.

use std::collections::{BTreeMap, BTreeSet};

use crate::workflow::{Aim, FlowStep, Role, StepKind};

/// The steps that may lead to the goals, by id. Goals that are no steps are left out.
#[must_use]
pub fn select<'s>(steps: &BTreeMap<&'s str, &FlowStep>, aim: &Aim) -> BTreeSet<&'s str> {
    let mut givers: BTreeMap<&str, Vec<&'s str>> = BTreeMap::new();
    for (id, step) in steps {
        let given = step.attributes.iter();
        for (name, _) in given.filter(|(_, it)| it.role == Role::Output) {
            givers.entry(name).or_default().push(id);
        }
    }
    let mut chosen = BTreeSet::new();
    // Inside a flow of its own nothing of what the outer one begins with is there.
    let mut seen: BTreeSet<(&str, bool)> = BTreeSet::new();
    let mut open: Vec<(&str, bool)> = aim
        .goals
        .iter()
        .map(|goal| (goal.as_str(), false))
        .collect();
    while let Some((id, inner)) = open.pop() {
        let Some((id, step)) = steps.get_key_value(id).filter(|_| seen.insert((id, inner))) else {
            continue;
        };
        chosen.insert(*id);
        let taken = step.attributes.iter().filter(|(name, taken)| {
            matches!(taken.role, Role::Required | Role::Optional)
                && (inner || !aim.init.contains_key(*name))
        });
        let needed = taken
            .filter_map(|(name, _)| givers.get(name.as_str()))
            .flatten();
        open.extend(needed.map(|giver| (*giver, inner)));
        if let StepKind::SubFlow { goals } = &step.kind {
            open.extend(goals.iter().map(|goal| (goal.as_str(), true)));
        }
    }
    chosen
}
