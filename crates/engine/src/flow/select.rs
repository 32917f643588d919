//! Which of many registered steps a flow may come to need, and what it lacks.
//!
//! More than its plan has: who gives an attribute is decided when the flow runs, and a step that is a
//! flow of its own is planned when it begins.

use std::collections::{BTreeMap, BTreeSet};

use crate::workflow::{Aim, FlowStep, Role, StepKind};

/// The steps that may lead to goals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepSelection<'s> {
    /// Those that do, by id.
    pub steps: BTreeSet<&'s str>,
    /// Those that steps need which are flows of their own.
    pub inner: BTreeSet<&'s str>,
    /// The attributes that are required, that none of them gives and the flow does not begin with.
    pub missing: BTreeSet<String>,
}

/// The steps that may lead to the goals. Goals that are no steps are left out.
pub fn select<'s>(steps: &BTreeMap<&'s str, &'s FlowStep>, aim: &Aim) -> StepSelection<'s> {
    let mut givers: BTreeMap<&str, Vec<&'s str>> = BTreeMap::new();
    for (id, step) in steps {
        let given = step.attributes.iter();
        for (name, _) in given.filter(|(_, it)| it.role == Role::Output) {
            givers.entry(name).or_default().push(id);
        }
    }
    let mut selection = StepSelection::default();
    let mut open: Vec<(&str, bool)> = aim.goals.iter().map(|goal| (&**goal, false)).collect();
    while let Some((wanted, is_inner)) = open.pop() {
        let Some((&id, step)) = steps.get_key_value(wanted) else {
            continue;
        };
        let chosen = if is_inner {
            &mut selection.inner
        } else {
            &mut selection.steps
        };
        if !chosen.insert(id) {
            continue;
        }
        for (name, taken) in &step.attributes {
            let takes = matches!(taken.role, Role::Required | Role::Optional);
            // Inside a flow of its own nothing of what the outer one begins with is there.
            if !takes || (!is_inner && aim.init.contains_key(name)) {
                continue;
            }
            let givers = givers.get(name.as_str()).into_iter().flatten();
            let others: Vec<&str> = givers.copied().filter(|giver| *giver != id).collect();
            let needed = taken.role == Role::Required && taken.default.is_none();
            if needed && others.is_empty() && !is_inner {
                selection.missing.insert(name.clone());
            }
            open.extend(others.into_iter().map(|giver| (giver, is_inner)));
        }
        if let StepKind::SubFlow { goals } = &step.kind {
            open.extend(goals.iter().map(|goal| (goal.as_str(), true)));
        }
    }
    selection
}
