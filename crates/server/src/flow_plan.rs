//! The plan of a flow, as clients see it: which steps lead to the goals, and what they are connected by.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use undaunted_engine::id::StepId;
use undaunted_engine::job::Job;
use undaunted_engine::workflow::{Attribute, FlowStep, Role, StepKind, StepWork, Workflow};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanView {
    /// The steps that are to be reached.
    pub goals: Vec<String>,
    /// The attributes that are required, and that neither a step gives nor the flow begins with.
    pub required: Vec<String>,
    /// The definitions of the steps that lead to the goals, by their ids.
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

/// The plan of a job that is a flow.
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

/// The plan of a flow that is not begun.
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

/// Which steps give each attribute, and which take it.
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

/// The definitions that stand in the text of a flow, if it is JSON.
fn written(text: &str) -> BTreeMap<String, Value> {
    let mut text: Value = serde_json::from_str(text).unwrap_or_default();
    let steps = text.get_mut("steps").map(Value::take);
    let Some(Value::Array(steps)) = steps else {
        return BTreeMap::new();
    };
    let steps = steps.into_iter().filter_map(|step| {
        let id = step.get("id")?.as_str()?.to_owned();
        Some((id, step))
    });
    steps.collect()
}

/// The definition of a step, as far as the checked form of it knows.
fn definition(id: &str, call: &FlowStep) -> Value {
    let attributes = call.attributes.iter();
    let attributes = attributes.map(|(name, it)| (name.clone(), attribute(it)));
    let mut step = Map::new();
    let mut put = |name: &str, value: Value| step.insert(name.to_owned(), value);
    let _ = put("id", id.into());
    let _ = put("name", call.name.as_str().into());
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
            if let (Some(http), Some(check)) = (http.as_object_mut(), health_check) {
                let _ = http.insert("health_check".to_owned(), check.as_str().into());
            }
            (if *later { "async" } else { "sync" }, "http", http)
        }
        StepKind::SubFlow { goals } => ("flow", "flow", json!({ "goals": goals })),
    };
    let _ = put("type", kind.into());
    let _ = put(name, how);
    let _ = put("attributes", Value::Object(attributes.collect()));
    if !call.labels.is_empty() {
        let _ = put("labels", json!(call.labels));
    }
    if let Some(script) = &call.predicate {
        let predicate = json!({ "language": "cel", "script": script });
        let _ = put("predicate", predicate);
    }
    Value::Object(step)
}

fn attribute(of: &Attribute) -> Value {
    let role = match of.role {
        Role::Required => "required",
        Role::Optional => "optional",
        Role::Const => "const",
        Role::Output => "output",
    };
    let mut attribute = Map::new();
    let mut put = |name: &str, value: Value| attribute.insert(name.to_owned(), value);
    let _ = put("role", role.into());
    let _ = put("type", of.kind.as_str().into());
    if let Some(default) = &of.default {
        let _ = put("default", default.to_string().into());
    }
    if of.for_each {
        let _ = put("for_each", true.into());
    }
    if let Some(inner) = &of.mapping {
        let _ = put("mapping", json!({ "name": inner }));
    }
    Value::Object(attribute)
}
