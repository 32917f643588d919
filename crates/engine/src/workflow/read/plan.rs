//! Plans a flow: backwards from the goals, over the attributes that steps take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::flow::flow_step;
use super::workflow::blank;
use crate::workflow::diagnostic::{DiagnosticCode, nearest};
use crate::workflow::model::{
    Attribute, AttributeRole, Flow, FlowGoals, FlowStep, FlowStepKind, PoolRequest, Step, StepWork, Workflow,
    WorkflowMode,
};

#[derive(Debug)]
pub(crate) struct PlanProblem {
    pub(crate) code: DiagnosticCode,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) step: Option<usize>,
}

impl PlanProblem {
    fn new(code: DiagnosticCode, message: String, step: Option<usize>) -> Self {
        Self { code, message, help: None, step }
    }
}

/// Plans a flow of steps that were checked before. The result is what checking the flow's text would
/// give, except for the spans: nothing is parsed, and flows share the steps they have in common. The
/// initial attributes are not part of it, so that flows with others can share the plan.
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
        let texts = problems.into_iter().map(|problem| match problem.help {
            Some(help) => format!("{} ({help})", problem.message),
            None => problem.message,
        });
        texts.collect()
    })
}

/// Plans the steps of a flow for other goals and initial attributes. The errors are in the order of the
/// steps.
pub(crate) fn aim_at(mut workflow: Workflow, aim: &FlowGoals) -> Result<Workflow, Vec<PlanProblem>> {
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
        (first != breaker.settings)
            .then(|| format!("the breaker `{name}` is defined twice with different settings"))
    });
    others.collect()
}

/// The plan, and for every step the steps it waits for.
pub(super) fn plan_flow(
    steps: &[Step],
    FlowGoals { goals, init }: FlowGoals,
) -> Result<(Flow, Vec<Vec<usize>>), Vec<PlanProblem>> {
    let producers = producers(steps);
    let numbered = || steps.iter().enumerate();
    let needs: Vec<Vec<usize>> =
        numbered().map(|(index, step)| needs(&producers, index, step, &init)).collect();
    let names: BTreeMap<&str, usize> = numbered().map(|(index, step)| (step.name.as_str(), index)).collect();
    let mut search = PlanSearch {
        steps,
        needs: &needs,
        producers: &producers,
        init: &init,
        state: vec![Visit::New; steps.len()],
        order: Vec::new(),
        problems: Vec::new(),
    };
    if goals.is_empty() {
        let message = "a flow needs at least one goal".to_owned();
        search.problems.push(PlanProblem::new(DiagnosticCode::MissingKey, message, None));
    }
    for (index, step) in numbered() {
        for goal in goals_of_sub_flow(step) {
            match find(&names, goal, Some(index)) {
                Ok(inner) if inner == index => {
                    let message = format!("step `{goal}` is a flow whose goal is the step itself");
                    search.problems.push(PlanProblem::new(DiagnosticCode::Cycle, message, Some(index)));
                }
                Ok(_) => {}
                Err(problem) => search.problems.push(problem),
            }
        }
    }
    for goal in &goals {
        match find(&names, goal, None) {
            Ok(index) => search.visit(index),
            Err(problem) => search.problems.push(problem),
        }
    }
    if !search.problems.is_empty() {
        return Err(search.problems);
    }
    let plan = search.order;
    Ok((Flow { goals, init, plan }, needs))
}

fn find(names: &BTreeMap<&str, usize>, goal: &str, of: Option<usize>) -> Result<usize, PlanProblem> {
    names.get(goal).copied().ok_or_else(|| {
        let near = nearest(goal, names.keys().copied());
        let message = format!("step `{goal}` not found");
        let help = near.map(|near| format!("did you mean `{near}`?"));
        PlanProblem { help, ..PlanProblem::new(DiagnosticCode::Unreachable, message, of) }
    })
}

fn goals_of_sub_flow(step: &Step) -> &[String] {
    match &step.work {
        StepWork::Call(call) => match &call.kind {
            FlowStepKind::SubFlow { goals } => goals,
            FlowStepKind::Call { .. } => &[],
        },
        StepWork::One | StepWork::Map(_) => &[],
    }
}

fn attributes(step: &Step) -> impl Iterator<Item = (&String, &Attribute)> {
    let call = match &step.work {
        StepWork::Call(call) => Some(&call.attributes),
        StepWork::One | StepWork::Map(_) => None,
    };
    call.into_iter().flatten()
}

type Producers<'a> = BTreeMap<&'a str, Vec<usize>>;

fn producers(steps: &[Step]) -> Producers<'_> {
    let mut producers = Producers::new();
    for (index, step) in steps.iter().enumerate() {
        for (name, _) in attributes(step).filter(|(_, given)| given.role == AttributeRole::Output) {
            producers.entry(name).or_default().push(index);
        }
    }
    producers
}

/// The steps that give what this one takes, except for initial attributes.
fn needs(producers: &Producers<'_>, index: usize, step: &Step, init: &BTreeMap<String, Value>) -> Vec<usize> {
    let taken = attributes(step).filter(|(name, attribute)| {
        matches!(attribute.role, AttributeRole::Required | AttributeRole::Optional)
            && !init.contains_key(*name)
    });
    let found = taken.filter_map(|(name, _)| producers.get(name.as_str())).flatten();
    let others: BTreeSet<usize> = found.copied().filter(|producer| *producer != index).collect();
    others.into_iter().collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Open,
    Done,
}

struct PlanSearch<'a> {
    steps: &'a [Step],
    needs: &'a [Vec<usize>],
    producers: &'a Producers<'a>,
    init: &'a BTreeMap<String, Value>,
    state: Vec<Visit>,
    order: Vec<usize>,
    problems: Vec<PlanProblem>,
}

impl PlanSearch<'_> {
    /// Puts a step after everything it needs. The stack is explicit: a chain of ten thousand steps must
    /// not recurse.
    fn visit(&mut self, goal: usize) {
        let mut path = vec![(goal, 0_usize)];
        while let Some((index, next)) = path.pop() {
            if next == 0 {
                match self.state.get(index) {
                    Some(Visit::New) => self.set(index, Visit::Open),
                    _ => continue,
                }
                self.check_inputs(index);
            }
            if let Some(&needed) = self.needs.get(index).and_then(|needs| needs.get(next)) {
                path.push((index, next.saturating_add(1)));
                if self.state.get(needed) == Some(&Visit::Open) {
                    let cycle = self.cycle(needed, &path);
                    self.problems.push(cycle);
                    continue;
                }
                path.push((needed, 0));
            } else {
                self.set(index, Visit::Done);
                self.order.push(index);
            }
        }
    }

    fn set(&mut self, index: usize, visit: Visit) {
        if let Some(state) = self.state.get_mut(index) {
            *state = visit;
        }
    }

    fn check_inputs(&mut self, index: usize) {
        let Some(step) = self.steps.get(index) else {
            return;
        };
        let given = |wanted: &String| {
            let others = self.producers.get(wanted.as_str()).into_iter().flatten();
            self.init.contains_key(wanted) || others.into_iter().any(|producer| *producer != index)
        };
        let required = attributes(step).filter(|(_, taken)| taken.role == AttributeRole::Required);
        let missing = required.filter(|(name, taken)| taken.default.is_none() && !given(name));
        let problems = missing.map(|(name, _)| {
            let message = format!("step `{}` needs `{name}`, which no step provides", step.name);
            let help = Some(format!("set `{name}` in `init`, or add it as an output of a step"));
            PlanProblem { help, ..PlanProblem::new(DiagnosticCode::Unreachable, message, Some(index)) }
        });
        let problems: Vec<_> = problems.collect();
        self.problems.extend(problems);
    }

    fn cycle(&self, needed: usize, path: &[(usize, usize)]) -> PlanProblem {
        let name = |index: &usize| self.steps.get(*index).map_or("", |step| step.name.as_str());
        let circle = path.iter().map(|(index, _)| index).skip_while(|index| **index != needed);
        let circle: Vec<_> = circle.map(name).chain([name(&needed)]).collect();
        let message = format!("these steps wait for each other: {}", circle.join(" → "));
        PlanProblem::new(DiagnosticCode::Cycle, message, Some(needed))
    }
}
