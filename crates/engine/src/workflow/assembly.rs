//! Flows of steps that were checked before.
//!
//! The result is what checking the flow's text would give, except for the spans: nothing is parsed, and
//! flows share the steps they have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::model::{FlowGoals, FlowStep, PoolRequest, Step, Workflow, WorkflowMode};
use super::read::{NoPlan, blank, flow_step, plan_flow};

/// The initial attributes are not part of the result, so that flows with others can share its plan.
pub fn assemble(
    steps: impl IntoIterator<Item = (String, Arc<FlowStep>)>,
    pool: Option<PoolRequest>,
    aim: &FlowGoals,
) -> Result<Workflow, Vec<String>> {
    let steps = (0..).zip(steps);
    let steps = steps.map(|(index, (id, step))| flow_step(id, index, step));
    let workflow = Workflow { steps: steps.collect(), pool, ..blank(WorkflowMode::Flow) };
    let conflicts = conflicts(&workflow.steps);
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    aim_at(workflow, aim).map_err(|problems| {
        let said = problems.into_iter().map(|problem| match problem.help {
            Some(help) => format!("{} ({help})", problem.message),
            None => problem.message,
        });
        said.collect()
    })
}

/// Plans the steps of a flow for other goals and initial attributes. The errors are in the order of the
/// steps.
pub(crate) fn aim_at(mut workflow: Workflow, aim: &FlowGoals) -> Result<Workflow, Vec<NoPlan>> {
    let planned = plan_flow(&workflow.steps, aim.clone());
    let (mut flow, needs) = planned.map_err(|mut problems| {
        problems.sort_by(|a, b| (a.step, a.code, &a.message).cmp(&(b.step, b.code, &b.message)));
        problems
    })?;
    for (step, needs) in workflow.steps.iter_mut().zip(needs) {
        step.needs = needs;
    }
    flow.init.clear();
    workflow.flow = Some(flow);
    Ok(workflow)
}

/// One breaker cannot have two settings in one flow.
fn conflicts(steps: &[Step]) -> Vec<String> {
    let mut known = BTreeMap::new();
    let breakers = steps.iter().flat_map(|step| &step.commands);
    let breakers = breakers.filter_map(|command| command.breaker.as_deref());
    let others = breakers.filter_map(|breaker| {
        let name = breaker.name.as_deref()?;
        let first = *known.entry(name).or_insert(breaker.settings);
        (first != breaker.settings).then(|| format!("the breaker `{name}` has other settings elsewhere"))
    });
    others.collect()
}
