//! The laws of a checked workflow.
//!
//! What the product no longer checks is checked here from outside: the graph is connected, names are unique,
//! every retry policy makes a plan within its limits, every template keeps values out of code.

use std::collections::BTreeSet;
use std::time::Duration;

use undaunted_engine::workflow::{
    Action, Command, Flow, HttpBody, InputSource, Map, MaxParallel, ResolvedRetry, Source, Step, StepWork,
    Workflow, WorkflowMode,
};
use undaunted_policy::{Policy, RetryState, RuleAction};

use super::check::span_outside_text;
use super::decide;
use super::expected::ExpectedPolicy;
use super::law::{Law, first_broken, uphold};
use super::template;

pub(super) fn words(workflow: &Workflow) -> BTreeSet<&'static str> {
    let mode = match workflow.mode {
        WorkflowMode::Sequence => "sequence",
        WorkflowMode::MapReduce => "mapreduce",
        WorkflowMode::Flow => "flow",
    };
    let actions = commands(workflow).into_iter().map(|command| match command.action {
        Action::Shell(_) => "shell",
        Action::Agent { .. } => "agent",
        Action::Http(_) => "http",
        Action::WriteFile(_) => "write_file",
        Action::Function(_) => "function",
        Action::Step(_) => "step",
        Action::SubFlow(_) => "flow",
    });
    actions.chain([mode]).collect()
}

pub(super) fn broken(source: &Source, workflow: &Workflow) -> Option<&'static str> {
    let commands = commands(workflow);
    for command in &commands {
        templates(command);
        plan(&command.retry.policy);
    }
    for call in workflow.steps.iter().filter_map(call) {
        plan(&call.policy);
    }
    let steps = workflow.steps.iter().enumerate();
    let laws = steps.flat_map(|(index, step)| step_laws(workflow, index, step));
    let flow = workflow.flow.iter();
    let laws = laws
        .chain(flow.flat_map(|flow| flow_laws(workflow, flow)))
        .chain(name_laws(workflow, &commands))
        .chain(commands.iter().flat_map(|command| command_laws(workflow, command)));
    let places = commands.iter().flat_map(|command| {
        let origins = command.retry.origins().map(|(_, origin)| origin.span);
        origins.chain([command.span])
    });
    let pool = workflow.pool.iter().flat_map(|pool| pool.spans);
    first_broken(laws).or_else(|| span_outside_text(source, places.chain(pool)))
}

/// The plan of a policy keeps the laws of plans.
pub(super) fn plan(policy: &Policy) {
    let expected = ExpectedPolicy::of(policy);
    uphold("a saved policy says everything", expected.is_some(), policy);
    if let Some(expected) = expected {
        decide::plan(policy, &expected, RetryState::default());
    }
}

fn call(step: &Step) -> Option<&ResolvedRetry> {
    match &step.work {
        StepWork::Call(call) => Some(&call.retry),
        StepWork::One | StepWork::Map(_) => None,
    }
}

fn commands(workflow: &Workflow) -> Vec<&Command> {
    let mut waiting: Vec<&Command> = vec![];
    waiting.extend(workflow.steps.iter().flat_map(|step| &step.commands));
    let mut found = vec![];
    while let Some(command) = waiting.pop() {
        let handlers = command.on_failure.iter();
        waiting.extend(handlers.flat_map(|handler| &handler.commands));
        waiting.extend(&command.on_success);
        found.push(command);
    }
    found
}

fn step_laws(workflow: &Workflow, index: usize, step: &Step) -> Vec<Law> {
    let flow = workflow.mode == WorkflowMode::Flow;
    let needed = |holds: fn(usize, usize) -> bool| step.needs.iter().all(|it| holds(*it, index));
    let exist = step.needs.iter().all(|it| *it < workflow.steps.len());
    let mut laws = vec![
        ("a step needs steps that are there", exist),
        ("no step needs itself", needed(|needed, index| needed != index)),
        ("a step stands behind those it needs", flow || needed(|needed, index| needed < index)),
        ("only the steps of a flow are calls", flow == matches!(step.work, StepWork::Call(_))),
        ("a step has commands", !step.commands.is_empty()),
    ];
    if let StepWork::Map(map) = &step.work {
        laws.extend(map_laws(map));
    }
    laws
}

fn map_laws(map: &Map) -> [Law; 3] {
    if let InputSource::Shell(shell) = &map.input.source {
        template::shell_laws(shell);
    }
    let share = map.tolerance.failure_threshold;
    [
        ("at least one item runs at a time", map.max_parallel != MaxParallel::Number(0)),
        ("an item has some time", map.item_deadline != Some(Duration::ZERO)),
        ("a share lies between 0 and 1", share.is_none_or(|share| (0.0..=1.0).contains(&share))),
    ]
}

fn flow_laws(workflow: &Workflow, flow: &Flow) -> [Law; 4] {
    let steps = &workflow.steps;
    let place = |index: usize| flow.plan.iter().position(|planned| *planned == index);
    let behind = |(at, index): (usize, &usize)| {
        let needs = steps.get(*index).map_or(&[][..], |step| &step.needs);
        needs.iter().all(|it| place(*it).is_some_and(|it| it < at))
    };
    let reached = |goal: &String| {
        let step = steps.iter().position(|step| step.name == *goal);
        step.and_then(place).is_some()
    };
    let distinct: BTreeSet<usize> = flow.plan.iter().copied().collect();
    [
        ("a plan is made of steps that are there", flow.plan.iter().all(|index| *index < steps.len())),
        ("no step is planned twice", distinct.len() == flow.plan.len()),
        ("a planned step stands behind those it needs", flow.plan.iter().enumerate().all(behind)),
        ("a plan reaches every goal", flow.goals.iter().all(reached)),
    ]
}

fn name_laws(workflow: &Workflow, commands: &[&Command]) -> [Law; 4] {
    let ids: BTreeSet<&str> = commands.iter().map(|command| command.id.as_str()).collect();
    let places: BTreeSet<u64> = commands.iter().map(|command| command.index).collect();
    let steps: BTreeSet<&str> = workflow.steps.iter().map(|step| step.name.as_str()).collect();
    let flow = workflow.mode == WorkflowMode::Flow;
    [
        ("no two commands have one id", ids.len() == commands.len()),
        ("no two commands draw from one place", places.len() == commands.len()),
        ("no two steps of a flow have one name", !flow || steps.len() == workflow.steps.len()),
        ("a flow has a plan, and nothing else has", flow == workflow.flow.is_some()),
    ]
}

fn command_laws(workflow: &Workflow, command: &Command) -> Vec<Law> {
    let typed = |c: char| !c.is_whitespace() && !c.is_control() && c != '/';
    let holds = command.retry.policy.rules().table().iter();
    let holds = holds.filter(|rule| rule.then() == RuleAction::Hold).count();
    let breaker = command.breaker.as_ref();
    let http = matches!(command.action, Action::Http(_) | Action::Step(_));
    let agent = match &command.action {
        Action::Agent { name, .. } => workflow.agents.contains_key(name),
        _ => true,
    };
    vec![
        ("an id can be typed", !command.id.is_empty() && command.id.chars().all(typed)),
        ("an attempt has some time", command.timeout != Some(Duration::ZERO)),
        ("an attempt may say something", command.output_limit != Some(0)),
        ("an agent is known", agent),
        ("what a rule holds a breaker lets go", holds == 0 || breaker.is_some()),
        (
            "a breaker has a name, or an address to be named after",
            http || breaker.is_none_or(|breaker| breaker.name.is_some()),
        ),
    ]
}

/// The templates of a command keep the laws of templates.
fn templates(command: &Command) {
    match &command.action {
        Action::Shell(shell) => template::shell_laws(shell),
        Action::Agent { prompt, .. } => template::text_laws(prompt),
        Action::WriteFile(file) => [&file.path, &file.content].into_iter().for_each(template::text_laws),
        Action::Function(function) => function.with.iter().for_each(template::json_laws),
        // The inputs of a step are no templates.
        Action::Step(_) | Action::SubFlow(_) => {}
        Action::Http(http) => {
            template::text_laws(&http.url);
            http.headers.iter().for_each(|(_, text)| template::text_laws(text));
            match &http.body {
                Some(HttpBody::Text(text)) => template::text_laws(text),
                Some(HttpBody::Json(json)) => template::json_laws(json),
                None => {}
            }
        }
    }
    command.env.iter().for_each(|(_, text)| template::text_laws(text));
    command.working_dir.iter().for_each(template::text_laws);
}
