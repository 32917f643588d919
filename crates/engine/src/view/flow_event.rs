//! The events of a flow in the HTTP API.
//!
//! A record is at most one event, and its version is the number of the event: clients detect missed events by
//! their numbers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use undaunted_policy::FailureClass;

use super::context::step_name;
use super::flow::{error, given};
use super::flow_item::{object, token};
use super::flow_plan::{PlanView, flow_plan};
use super::history::History;
use super::projection::{Projection, StepHistory};
use super::time::rfc3339;
use crate::event::{Event, ItemEvent, JobEvent, Record, StepEvent};
use crate::id::StepId;
use crate::job::Job;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowEventView {
    data: FlowEventData,
    /// `flow` and the id of the flow.
    id: [String; 2],
    sequence: u64,
    /// In milliseconds.
    timestamp: u64,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// Each kind of event has some of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct FlowEventData {
    /// In milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    flow_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    init: Option<BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_retry_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<PlanView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The inputs of each item, by token.
    #[serde(skip_serializing_if = "Option::is_none")]
    work_items: Option<BTreeMap<String, Value>>,
}

/// The event of a record, if it is one. Job and projection have applied the record.
pub fn flow_event(
    job: &Job,
    projection: &Projection,
    version: u64,
    record: &Record,
) -> Option<FlowEventView> {
    let mut data = FlowEventData { flow_id: job.id().to_owned(), ..FlowEventData::default() };
    let kind = match &record.event {
        Event::Job(event) => data.add_job(job, projection, event),
        Event::Step(event) => data.add_step(job, projection, event),
        Event::Item(event) => data.add_item(job, projection, event),
        Event::Breaker(_) => None,
    }?;
    Some(FlowEventView {
        data,
        id: ["flow".to_owned(), job.id().to_owned()],
        sequence: version,
        timestamp: record.at.as_millis(),
        kind,
    })
}

/// Each method returns the type of the event, if the record is one.
impl FlowEventData {
    fn add_job(&mut self, job: &Job, projection: &Projection, event: &JobEvent) -> Option<&'static str> {
        match event {
            JobEvent::Submitted(_) => {
                self.plan = Some(flow_plan(job));
                self.init = job.workflow().flow.as_ref().map(|flow| flow.init.clone());
                Some("flow_started")
            }
            JobEvent::Completed(_) | JobEvent::Partial(_) => {
                self.result = Some(result(job));
                Some("flow_completed")
            }
            JobEvent::Failed(_) | JobEvent::Cancelled(_) => {
                self.error = Some(error(job, projection).unwrap_or_default());
                Some("flow_failed")
            }
            JobEvent::Resumed(_)
            | JobEvent::TextKept { .. }
            | JobEvent::Stopping { .. }
            | JobEvent::Suspended
            | JobEvent::PolicyChanged { .. }
            | JobEvent::Redriven { .. }
            | JobEvent::Paused
            | JobEvent::Unpaused { .. }
            | JobEvent::StateImported { .. }
            | JobEvent::PoolToppedUp { .. } => None,
        }
    }

    fn add_step(&mut self, job: &Job, projection: &Projection, event: &StepEvent) -> Option<&'static str> {
        let step = event.step();
        self.step_id = step_name(job, step);
        let before = projection.steps.get(&step);
        Some(match event {
            StepEvent::ItemsRead { last: true, .. } => {
                self.begun(job, projection, step);
                "step_started"
            }
            StepEvent::Completed { .. } => {
                self.outputs = Some(Value::Object(given(job, step)));
                self.duration = Some(before.and_then(StepHistory::millis).unwrap_or_default());
                "step_completed"
            }
            StepEvent::Failed { .. } | StepEvent::Unreachable { .. } | StepEvent::InputFailed { .. } => {
                self.error = Some(before.and_then(StepHistory::error).unwrap_or_default());
                "step_failed"
            }
            StepEvent::Skipped { .. } => {
                self.reason = Some("predicate returned false");
                "step_skipped"
            }
            StepEvent::AttributeSet { name, value, .. } => {
                self.key = Some(name.clone());
                self.value = Some(serde_json::from_str(value).unwrap_or_default());
                "attribute_set"
            }
            StepEvent::Started { .. }
            | StepEvent::ItemsRead { last: false, .. }
            | StepEvent::CompletionReached(_) => return None,
        })
    }

    fn begun(&mut self, job: &Job, projection: &Projection, step: StepId) {
        let items = job.step(step).into_iter().flat_map(|found| {
            let items = found.items.iter();
            items.map(|(index, _)| {
                let inputs = object(found.items.input(index));
                (token(job, projection, step.item(index)), inputs)
            })
        });
        self.work_items = Some(items.collect());
        let begun = projection.steps.get(&step);
        let inputs = begun.map(|begun| begun.inputs.clone());
        self.inputs = Some(Value::Object(inputs.unwrap_or_default()));
    }

    fn add_item(&mut self, job: &Job, projection: &Projection, event: &ItemEvent) -> Option<&'static str> {
        let item = event.item();
        let history = projection.items.items.get(&item);
        let error = || Some(history.and_then(History::error).unwrap_or_default());
        let kind = match event {
            ItemEvent::AttemptStarted(_) => {
                let step = job.step(item.step);
                self.inputs = step.map(|step| object(step.items.input(item.index)));
                "work_started"
            }
            ItemEvent::AttemptSucceeded(done) if done.next.is_none() => {
                self.outputs = Some(object(done.output.as_deref().unwrap_or("{}")));
                "work_succeeded"
            }
            ItemEvent::AttemptFailed(failed) if failed.class != FailureClass::Permanent => {
                self.error = error();
                "work_not_completed"
            }
            ItemEvent::RetryScheduled(retrying) => {
                self.retry_count = Some(retrying.sum.retry);
                self.next_retry_at = Some(rfc3339(retrying.due));
                self.error = error();
                "retry_scheduled"
            }
            ItemEvent::DeadLettered { .. } => {
                self.error = error();
                "work_failed"
            }
            ItemEvent::AttemptSucceeded(_)
            | ItemEvent::AttemptFailed(_)
            | ItemEvent::AttemptAccepted { .. }
            | ItemEvent::CommandStopped(_)
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::CommandRecovered { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::Skipped { .. }
            | ItemEvent::Redriven { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::Held(_)
            | ItemEvent::Released(_)
            | ItemEvent::LateResult(_) => return None,
        };
        self.step_id = step_name(job, item.step);
        self.token = Some(token(job, projection, item));
        Some(kind)
    }
}

/// The attributes that the goals have set.
fn result(job: &Job) -> Map<String, Value> {
    let goals = job.workflow().flow.iter().flat_map(|flow| &flow.goals);
    let steps = || StepId::all().zip(&job.workflow().steps);
    let goals = goals.filter_map(|goal| steps().find(|(_, step)| step.name == *goal));
    goals.flat_map(|(step, _)| given(job, step)).collect()
}
