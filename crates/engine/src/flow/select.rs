//! Selects the registered steps that a flow may need, and names the attributes it lacks.
//!
//! A superset of the flow's plan: which step gives an attribute is decided while the flow runs, and a
//! sub-flow is planned when it begins.

use std::collections::{BTreeMap, BTreeSet};

use crate::workflow::{AttributeRole, FlowGoals, FlowStep, FlowStepKind};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepSelection<'s> {
    pub steps: BTreeSet<&'s str>,
    /// Steps that sub-flows need.
    pub inner: BTreeSet<&'s str>,
    /// Required attributes that no step gives and the flow does not begin with.
    pub missing: BTreeSet<String>,
}

/// Goals that are no steps are left out.
pub fn select<'s>(steps: &BTreeMap<&'s str, &'s FlowStep>, aim: &FlowGoals) -> StepSelection<'s> {
    let mut givers: BTreeMap<&str, Vec<&'s str>> = BTreeMap::new();
    for (id, step) in steps {
        let given = step.attributes.iter();
        for (name, _) in given.filter(|(_, it)| it.role == AttributeRole::Output) {
            givers.entry(name).or_default().push(id);
        }
    }
    let mut selection = StepSelection::default();
    let mut open: Vec<(&str, bool)> = aim.goals.iter().map(|goal| (&**goal, false)).collect();
    while let Some((wanted, is_inner)) = open.pop() {
        let Some((&id, step)) = steps.get_key_value(wanted) else {
            continue;
        };
        let chosen = if is_inner { &mut selection.inner } else { &mut selection.steps };
        if !chosen.insert(id) {
            continue;
        }
        for (name, taken) in &step.attributes {
            let takes = matches!(taken.role, AttributeRole::Required | AttributeRole::Optional);
            // A sub-flow does not see what the outer flow begins with.
            if !takes || (!is_inner && aim.init.contains_key(name)) {
                continue;
            }
            let givers = givers.get(name.as_str()).into_iter().flatten();
            let others: Vec<&str> = givers.copied().filter(|giver| *giver != id).collect();
            let needed = taken.role == AttributeRole::Required && taken.default.is_none();
            if needed && others.is_empty() && !is_inner {
                selection.missing.insert(name.clone());
            }
            open.extend(others.into_iter().map(|giver| (giver, is_inner)));
        }
        if let FlowStepKind::SubFlow { goals } = &step.kind {
            open.extend(goals.iter().map(|goal| (goal.as_str(), true)));
        }
    }
    selection
}
