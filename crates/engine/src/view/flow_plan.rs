//! The plan of a flow in the HTTP API: the steps that lead to the goals, and the attributes that connect them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::id::StepId;
use crate::job::Job;
use crate::workflow::{Attribute, AttributeRole, FlowStep, FlowStepKind, StepWork, Workflow};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanView {
    attributes: BTreeMap<String, AttributeLinks>,
    /// Always empty: no step that leads to a goal is excluded.
    excluded: Map<String, Value>,
    goals: Vec<String>,
    /// Required attributes that neither a step nor `init` sets.
    required: Vec<String>,
    /// Definitions, verbatim if the text of the flow is JSON.
    steps: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AttributeLinks {
    consumers: Vec<String>,
    providers: Vec<String>,
}

#[derive(Serialize)]
struct DefinitionView<'a> {
    attributes: BTreeMap<&'a str, AttributeDefinition<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<SubFlowDefinition<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<HttpDefinition<'a>>,
    id: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicate: Option<PredicateDefinition<'a>>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct HttpDefinition<'a> {
    endpoint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_check: Option<&'a str>,
    /// In milliseconds.
    timeout: u64,
}

#[derive(Serialize)]
struct SubFlowDefinition<'a> {
    goals: &'a [String],
}

#[derive(Serialize)]
struct PredicateDefinition<'a> {
    language: &'static str,
    script: &'a str,
}

#[derive(Serialize)]
struct AttributeDefinition<'a> {
    /// As JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_each: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapping: Option<MappingDefinition<'a>>,
    role: &'static str,
    #[serde(rename = "type")]
    kind: &'a str,
}

#[derive(Serialize)]
struct MappingDefinition<'a> {
    name: &'a str,
}

pub fn flow_plan(job: &Job) -> PlanView {
    let Some(flow) = &job.workflow().flow else {
        return PlanView::default();
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
    PlanView::of(
        &flow.goals,
        required.into_iter().cloned().collect(),
        planned.iter().copied(),
        &job.submitted().text,
    )
}

/// The plan of a flow that was not started.
pub fn plan_preview(workflow: &Workflow, text: &str, required: Vec<String>) -> PlanView {
    let flow = workflow.flow.as_ref();
    let planned = flow.into_iter().flat_map(|flow| &flow.plan);
    let planned = planned.filter_map(|place| {
        let step = workflow.steps.get(*place)?;
        match &step.work {
            StepWork::Call(call) => Some((step.name.as_str(), &**call)),
            StepWork::One | StepWork::Map(_) => None,
        }
    });
    let goals = flow.map(|flow| flow.goals.as_slice());
    PlanView::of(goals.unwrap_or_default(), required, planned, text)
}

impl PlanView {
    fn of<'a>(
        goals: &[String],
        required: Vec<String>,
        planned: impl Iterator<Item = (&'a str, &'a FlowStep)>,
        text: &str,
    ) -> Self {
        let mut written = written(text);
        let steps = planned.map(|(id, call)| {
            let known = written.remove(id);
            (id.to_owned(), known.unwrap_or_else(|| definition(id, call)))
        });
        let steps: BTreeMap<String, Value> = steps.collect();
        Self {
            attributes: attribute_links(steps.values().zip(steps.keys().map(String::as_str))),
            excluded: Map::new(),
            goals: goals.to_vec(),
            required,
            steps,
        }
    }
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
    let attributes = attributes.map(|(name, it)| (name.as_str(), attribute(it)));
    let (kind, http, flow) = match &call.kind {
        FlowStepKind::Call { endpoint, health_check, timeout, later, .. } => {
            let http = HttpDefinition {
                endpoint,
                health_check: health_check.as_deref(),
                timeout: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            };
            (if *later { "async" } else { "sync" }, Some(http), None)
        }
        FlowStepKind::SubFlow { goals } => ("flow", None, Some(SubFlowDefinition { goals })),
    };
    let predicate = call.predicate.as_ref();
    let view = DefinitionView {
        attributes: attributes.collect(),
        flow,
        http,
        id,
        labels: &call.labels,
        name: &call.name,
        predicate: predicate
            .map(|predicate| PredicateDefinition { language: "cel", script: predicate.script() }),
        kind,
    };
    // Its keys are texts, so it is always an object.
    serde_json::to_value(view).unwrap_or_default()
}

fn attribute(of: &Attribute) -> AttributeDefinition<'_> {
    let role = match of.role {
        AttributeRole::Required => "required",
        AttributeRole::Optional => "optional",
        AttributeRole::Const => "const",
        AttributeRole::Output => "output",
    };
    let mapping = of.mapping.as_deref();
    AttributeDefinition {
        default: of.default.as_ref().map(Value::to_string),
        for_each: of.for_each.then_some(true),
        mapping: mapping.map(|name| MappingDefinition { name }),
        role,
        kind: &of.kind,
    }
}
