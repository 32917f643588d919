//! The plan of a flow in the HTTP API: the steps that lead to the goals, and the attributes that connect them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::flow_item::put_some;
use crate::flow::Predicate;
use crate::id::StepId;
use crate::job::Job;
use crate::workflow::{Attribute, AttributeRole, Flow, FlowStep, FlowStepKind, Step, StepWork, Workflow};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AttributeLinks {
    consumers: Vec<String>,
    providers: Vec<String>,
}

pub fn flow_plan(job: &Job) -> Value {
    let Some(flow) = &job.workflow().flow else {
        return plan(None, &[], std::iter::empty(), "", &[]);
    };
    let planned = flow.plan.iter().filter_map(|place| {
        let number = StepId::at(*place);
        let name = job.plan().step(number)?.name.as_str();
        Some((name, job.plan().call(number)?))
    });
    let planned: Vec<(&str, &FlowStep)> = planned.collect();
    let every = || planned.iter().flat_map(|(_, call)| &call.attributes);
    let given = every().filter(|(_, it)| it.role == AttributeRole::Output);
    let given: BTreeSet<&String> = given.map(|(name, _)| name).collect();
    let required = every().filter(|(name, it)| {
        let needed = it.role == AttributeRole::Required && it.default.is_none();
        let begun_with = job.attributes.get(*name).map(|given| given.step) == Some(None);
        needed && !given.contains(name) && !begun_with
    });
    let required: BTreeSet<&String> = required.map(|(name, _)| name).collect();
    let required: Vec<String> = required.into_iter().cloned().collect();
    plan(Some(flow), &required, planned.iter().copied(), &job.submitted().text, &job.workflow().steps)
}

/// The plan of a flow that was not started.
pub fn plan_preview(workflow: &Workflow, text: &str, required: &[String]) -> Value {
    let flow = workflow.flow.as_ref();
    let planned = flow.into_iter().flat_map(|flow| &flow.plan);
    let planned = planned.filter_map(|place| {
        let step = workflow.steps.get(*place)?;
        match &step.work {
            StepWork::Call(call) => Some((step.name.as_str(), &**call)),
            StepWork::One | StepWork::Map(_) => None,
        }
    });
    plan(flow, required, planned, text, &workflow.steps)
}

/// `required` are the required attributes that neither a step nor `init` sets. Definitions are verbatim if the
/// text of the flow is JSON.
fn plan<'a>(
    flow: Option<&Flow>,
    required: &[String],
    planned: impl Iterator<Item = (&'a str, &'a FlowStep)>,
    text: &str,
    all: &[Step],
) -> Value {
    let mut written = written(text);
    let steps = planned.map(|(id, call)| {
        let known = written.remove(id);
        (id.to_owned(), known.unwrap_or_else(|| definition(id, call)))
    });
    let steps: BTreeMap<String, Value> = steps.collect();
    json!({
        "attributes": attribute_links(steps.values().zip(steps.keys().map(String::as_str))),
        "excluded": excluded(flow, all),
        "goals": flow.map(|flow| flow.goals.as_slice()).unwrap_or_default(),
        "required": required,
        "steps": steps,
    })
}

/// The providers that the plan leaves out, and the inputs that they miss.
fn excluded(flow: Option<&Flow>, all: &[Step]) -> Value {
    let excluded = flow.into_iter().flat_map(|flow| &flow.excluded);
    let missing = excluded.filter_map(|(place, missing)| Some((&all.get(*place)?.name, missing)));
    let missing: BTreeMap<&String, &Vec<String>> = missing.collect();
    if missing.is_empty() { json!({}) } else { json!({ "missing": missing }) }
}

/// The links of the attributes in definitions of steps, which are given with their ids.
pub fn attribute_links<'a>(
    steps: impl Iterator<Item = (&'a Value, &'a str)>,
) -> BTreeMap<String, AttributeLinks> {
    let mut links: BTreeMap<String, AttributeLinks> = BTreeMap::new();
    for (step, id) in steps {
        let attributes = step.get("attributes").and_then(Value::as_object);
        for (name, attribute) in attributes.into_iter().flatten() {
            let link = links.entry(name.clone()).or_default();
            match attribute.get("role").and_then(Value::as_str) {
                Some("output") => link.providers.push(id.to_owned()),
                Some("required" | "optional") => link.consumers.push(id.to_owned()),
                _ => {}
            }
        }
    }
    links
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

/// The definition of a step, as far as its checked form preserves it.
fn definition(id: &str, call: &FlowStep) -> Value {
    let attributes = call.attributes.iter();
    let attributes: Map<_, _> = attributes.map(|(name, it)| (name.clone(), attribute(it))).collect();
    let mut view = json!({ "attributes": attributes, "id": id, "name": call.name });
    let kind = match &call.kind {
        FlowStepKind::Call { method, endpoint, health_check, timeout, later, .. } => {
            let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            let mut http = json!({ "endpoint": endpoint, "timeout": millis });
            put_some(&mut http, "health_check", health_check.as_ref());
            put_some(&mut http, "method", Some(method).filter(|method| *method != "POST"));
            put_some(&mut view, "http", Some(http));
            if *later { "async" } else { "sync" }
        }
        FlowStepKind::SubFlow { goals } => {
            put_some(&mut view, "flow", Some(json!({ "goals": goals })));
            "flow"
        }
    };
    put_some(&mut view, "type", Some(kind));
    put_some(&mut view, "labels", Some(&call.labels).filter(|labels| !labels.is_empty()));
    let script = call.predicate.as_ref().map(Predicate::script);
    put_some(&mut view, "predicate", script.map(|script| json!({ "language": "cel", "script": script })));
    view
}

fn attribute(of: &Attribute) -> Value {
    let mut view = json!({ "role": of.role.word(), "type": of.kind });
    put_some(&mut view, "default", of.default.as_ref().map(Value::to_string));
    put_some(&mut view, "for_each", of.for_each.then_some(true));
    put_some(&mut view, "mapping", of.mapping.as_ref().map(|name| json!({ "name": name })));
    view
}
