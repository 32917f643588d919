//! Plans a flow: backwards from the goals, over the attributes that steps take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::flow::flow_step;
use super::workflow::blank;
use crate::flow::AvailableSteps;
use crate::workflow::diagnostic::{DiagnosticCode, nearest};
use crate::workflow::model::{
    Attribute, Flow, FlowGoals, FlowStep, FlowStepKind, PoolRequest, Step, StepWork, Workflow, WorkflowMode,
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
    let numbered = || steps.iter().enumerate();
    let available = AvailableSteps::of(steps.iter().map(attributes).collect(), &init);
    let needs: Vec<Vec<usize>> = numbered().map(|(index, _)| needs(&available, index)).collect();
    let names: BTreeMap<&str, usize> = numbered().map(|(index, step)| (step.name.as_str(), index)).collect();
    let mut search = PlanSearch {
        steps,
        needs: &needs,
        available: &available,
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
    let excluded = excluded(&available, &plan);
    Ok((Flow { goals, init, plan, excluded }, needs))
}

/// The steps that would set an input of a planned step, if what they require could appear.
fn excluded(available: &AvailableSteps<'_>, plan: &[usize]) -> BTreeMap<usize, Vec<String>> {
    let inputs = plan.iter().flat_map(|step| available.open_inputs(*step).map(|(name, _)| (*step, name)));
    let providers = inputs.flat_map(|(step, name)| available.others(step, name));
    let left_out = providers.filter(|provider| !available.has(*provider));
    let why = |provider: usize| {
        let missing = available.missing(provider).into_iter();
        (provider, missing.map(str::to_owned).collect())
    };
    left_out.map(why).collect()
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

/// Only steps of flows have attributes.
fn attributes(step: &Step) -> &BTreeMap<String, Attribute> {
    static NONE: BTreeMap<String, Attribute> = BTreeMap::new();
    match &step.work {
        StepWork::Call(call) => &call.attributes,
        StepWork::One | StepWork::Map(_) => &NONE,
    }
}

/// The steps that give what this one takes, except for initial attributes.
fn needs(available: &AvailableSteps<'_>, index: usize) -> Vec<usize> {
    let inputs = available.open_inputs(index);
    let providers = inputs.flat_map(|(name, input)| available.providers(index, name, input));
    let providers: BTreeSet<usize> = providers.collect();
    providers.into_iter().collect()
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
    available: &'a AvailableSteps<'a>,
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
        let missing = self.available.missing(index).into_iter();
        let missing = missing.filter(|name| self.available.others(index, name).next().is_none());
        let problems = missing.map(|name| {
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
