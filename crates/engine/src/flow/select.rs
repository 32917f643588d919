//! Selects the registered steps that a flow may need, and names the attributes it lacks.
//!
//! The selection is larger than the flow's plan: the flow decides while it runs which step sets an attribute,
//! and plans a sub-flow when that starts.

use std::collections::{BTreeMap, BTreeSet};

use crate::workflow::{AttributeRole, FlowGoals, FlowStep, FlowStepKind};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepSelection<'s> {
    pub steps: BTreeSet<&'s str>,
    /// Steps that sub-flows need.
    pub inner: BTreeSet<&'s str>,
    /// Required attributes that no step sets and the flow does not start with.
    pub missing: BTreeSet<String>,
}

/// Goals that are not registered steps are left out.
pub fn select<'s>(steps: &BTreeMap<&'s str, &'s FlowStep>, aim: &FlowGoals) -> StepSelection<'s> {
    let mut producers: BTreeMap<&str, Vec<&'s str>> = BTreeMap::new();
    for (id, step) in steps {
        for (name, _) in step.attributes.iter().filter(|(_, it)| it.role == AttributeRole::Output) {
            producers.entry(name).or_default().push(id);
        }
    }
    let mut selection = StepSelection::default();
    let mut open: Vec<(&str, bool)> = aim.goals.iter().map(|goal| (&**goal, false)).collect();
    while let Some((wanted, is_inner)) = open.pop() {
        let Some((&id, step)) = steps.get_key_value(wanted) else { continue };
        let chosen = if is_inner { &mut selection.inner } else { &mut selection.steps };
        if !chosen.insert(id) {
            continue;
        }
        for (name, attribute) in &step.attributes {
            let is_input = matches!(attribute.role, AttributeRole::Required | AttributeRole::Optional);
            // A sub-flow does not see the initial attributes of the outer flow.
            if !is_input || (!is_inner && aim.init.contains_key(name)) {
                continue;
            }
            let producers = producers.get(name.as_str()).into_iter().flatten();
            let others: Vec<&str> = producers.copied().filter(|producer| *producer != id).collect();
            let needed = attribute.role == AttributeRole::Required && attribute.default.is_none();
            if needed && others.is_empty() && !is_inner {
                selection.missing.insert(name.clone());
            }
            open.extend(others.into_iter().map(|producer| (producer, is_inner)));
        }
        if let FlowStepKind::SubFlow { goals } = &step.kind {
            open.extend(goals.iter().map(|goal| (goal.as_str(), true)));
        }
    }
    selection
}
