//! The plan of a flow, as clients see it: which steps lead to the goals, and which attributes connect them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use undaunted_engine::id::StepId;
use undaunted_engine::job::Job;
use undaunted_engine::workflow::{Attribute, FlowStep, Role, StepKind, StepWork, Workflow};

use crate::flow_state::put;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanView {
    pub goals: Vec<String>,
    /// Required attributes that no step provides and that the flow is not started with.
    pub required: Vec<String>,
    pub steps: BTreeMap<String, Value>,
}

impl PlanView {
    pub fn json(&self) -> Value {
        let steps = self.steps.iter().map(|(id, step)| (id.as_str(), step));
        json!({
            "goals": self.goals,
            "required": self.required,
            "steps": self.steps,
            "attributes": links(steps),
            "excluded": {},
        })
    }
}

pub fn plan(job: &Job) -> PlanView {
    let Some(flow) = &job.workflow().flow else {
        return PlanView::default();
    };
    let planned = flow.plan.iter().filter_map(|place| {
        let number = StepId::at(*place);
        let name = &job.plan().step(number)?.name;
        Some((name, job.plan().call(number)?))
    });
    let planned: Vec<(&String, &FlowStep)> = planned.collect();
    let every = || planned.iter().flat_map(|(_, call)| &call.attributes);
    let given = every().filter(|(_, it)| it.role == Role::Output);
    let given: BTreeSet<&String> = given.map(|(name, _)| name).collect();
    let required = every().filter(|(name, it)| {
        let needed = it.role == Role::Required && it.default.is_none();
        let begun_with = job.attributes.get(*name).map(|given| given.step) == Some(None);
        needed && !given.contains(name) && !begun_with
    });
    let required: BTreeSet<&String> = required.map(|(name, _)| name).collect();
    let written = written(&job.submitted().text);
    let steps = planned.iter().map(|&(id, call)| {
        let known = written.get(id.as_str()).cloned();
        let definition = known.unwrap_or_else(|| definition(id, call));
        (id.clone(), definition)
    });
    PlanView {
        goals: flow.goals.clone(),
        required: required.into_iter().cloned().collect(),
        steps: steps.collect(),
    }
}

pub fn preview(workflow: &Workflow, text: &str, required: Vec<String>) -> PlanView {
    let written = written(text);
    let flow = workflow.flow.as_ref();
    let planned = flow.into_iter().flat_map(|flow| &flow.plan);
    let planned = planned.filter_map(|place| {
        let step = workflow.steps.get(*place)?;
        match &step.work {
            StepWork::Call(call) => {
                let known = written.get(&step.name).cloned();
                let definition = known.unwrap_or_else(|| definition(&step.name, call));
                Some((step.name.clone(), definition))
            }
            StepWork::One | StepWork::Map(_) => None,
        }
    });
    PlanView {
        goals: flow.map(|flow| flow.goals.clone()).unwrap_or_default(),
        required,
        steps: planned.collect(),
    }
}

/// Which steps provide each attribute, and which consume it.
pub(crate) fn links<'a>(steps: impl Iterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut links: BTreeMap<&str, [Vec<&str>; 2]> = BTreeMap::new();
    for (id, step) in steps {
        let attributes = step.get("attributes").and_then(Value::as_object);
        for (name, attribute) in attributes.into_iter().flatten() {
            let [givers, takers] = links.entry(name).or_default();
            match attribute.get("role").and_then(Value::as_str) {
                Some("output") => givers.push(id),
                Some("required" | "optional") => takers.push(id),
                _ => {}
            }
        }
    }
    let links = links.into_iter().map(|(name, [givers, takers])| {
        let link = json!({ "providers": givers, "consumers": takers });
        (name.to_owned(), link)
    });
    Value::Object(links.collect())
}

/// The definitions in the text of a flow, if it is JSON.
fn written(text: &str) -> BTreeMap<String, Value> {
    let mut text: Value = serde_json::from_str(text).unwrap_or_default();
    let steps = text.get_mut("steps").map(Value::take);
    let Some(Value::Array(steps)) = steps else {
        return BTreeMap::new();
    };
    let with_id = |step: Value| Some((step.get("id")?.as_str()?.to_owned(), step));
    steps.into_iter().filter_map(with_id).collect()
}

/// The definition of a step, as far as its checked form knows it.
fn definition(id: &str, call: &FlowStep) -> Value {
    let attributes = call.attributes.iter();
    let attributes = attributes.map(|(name, it)| (name.clone(), attribute(it)));
    let (kind, name, how) = match &call.kind {
        StepKind::Call {
            endpoint,
            health_check,
            timeout,
            later,
            ..
        } => {
            let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            let mut http = json!({ "endpoint": endpoint, "timeout": timeout });
            put(&mut http, "health_check", health_check.as_deref());
            (if *later { "async" } else { "sync" }, "http", http)
        }
        StepKind::SubFlow { goals } => ("flow", "flow", json!({ "goals": goals })),
    };
    let mut step = json!({ "id": id, "name": call.name, "type": kind });
    put(&mut step, name, Some(how));
    let attributes = Value::Object(attributes.collect());
    put(&mut step, "attributes", Some(attributes));
    if !call.labels.is_empty() {
        put(&mut step, "labels", Some(json!(call.labels)));
    }
    if let Some(predicate) = &call.predicate {
        let predicate = json!({ "language": "cel", "script": predicate.script() });
        put(&mut step, "predicate", Some(predicate));
    }
    step
}

fn attribute(of: &Attribute) -> Value {
    let role = match of.role {
        Role::Required => "required",
        Role::Optional => "optional",
        Role::Const => "const",
        Role::Output => "output",
    };
    let mut attribute = json!({ "role": role, "type": of.kind });
    let default = of.default.as_ref().map(Value::to_string);
    put(&mut attribute, "default", default);
    put(&mut attribute, "for_each", of.for_each.then_some(true));
    let mapping = of.mapping.as_ref().map(|inner| json!({ "name": inner }));
    put(&mut attribute, "mapping", mapping);
    attribute
}
