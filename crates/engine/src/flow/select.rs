//! Selects the registered steps that a flow may need, and names the attributes it lacks.
//!
//! The selection is larger than the flow's plan: the flow decides while it runs which step sets an attribute,
//! and plans a sub-flow when that starts. It also has the providers that the plan leaves out, so that the plan
//! can name them.

use std::collections::{BTreeMap, BTreeSet};

use super::available::AvailableSteps;
use crate::workflow::{FlowGoals, FlowStep, FlowStepKind};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepSelection<'s> {
    pub steps: BTreeSet<&'s str>,
    /// Steps that sub-flows need.
    pub inner: BTreeSet<&'s str>,
    /// Attributes that the goals require, that no step sets and the flow does not start with.
    pub missing: BTreeSet<String>,
}

/// Goals that are not registered steps are left out.
pub fn select<'s>(steps: &BTreeMap<&'s str, &'s FlowStep>, aim: &FlowGoals) -> StepSelection<'s> {
    let attributes = || steps.values().map(|step| &step.attributes).collect();
    // A sub-flow does not see the initial attributes of the outer flow.
    let none = BTreeMap::new();
    let [outer, inner] = [&aim.init, &none].map(|init| AvailableSteps::of(attributes(), init));
    let listed: Vec<(&'s str, &'s FlowStep)> = steps.iter().map(|(id, step)| (*id, *step)).collect();
    let numbers = steps.keys().zip(0_usize..);
    let numbers: BTreeMap<&str, usize> = numbers.map(|(id, number)| (*id, number)).collect();
    let number_of = |goal: &String| numbers.get(goal.as_str()).copied();
    let mut selection = StepSelection::default();
    let mut expanded = BTreeSet::new();
    let goals = aim.goals.iter().filter_map(number_of);
    let mut open: Vec<(usize, bool)> = goals.map(|goal| (goal, false)).collect();
    while let Some((number, is_inner)) = open.pop() {
        let Some((id, step)) = listed.get(number).filter(|_| expanded.insert((number, is_inner))) else {
            continue;
        };
        let chosen = if is_inner { &mut selection.inner } else { &mut selection.steps };
        let _ = chosen.insert(id);
        let known = if is_inner { &inner } else { &outer };
        for (name, input) in known.open_inputs(number) {
            if is_inner {
                // What the sub-flow starts with is not known yet, so every provider may be needed.
                open.extend(known.others(number, name).map(|other| (other, true)));
                continue;
            }
            let providers = known.providers(number, name, input);
            if providers.is_empty() && known.missing(number).contains(&name) {
                selection.missing.insert(name.to_owned());
            }
            // The others are left out of the plan, which names them.
            let left_out = known.others(number, name).filter_map(|other| listed.get(other));
            selection.steps.extend(left_out.map(|(id, _)| *id));
            open.extend(providers.into_iter().map(|provider| (provider, false)));
        }
        if let FlowStepKind::SubFlow { goals } = &step.kind {
            open.extend(goals.iter().filter_map(number_of).map(|goal| (goal, true)));
        }
    }
    selection
}
