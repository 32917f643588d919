//! The events of a flow in the HTTP API.
//!
//! A record is at most one event, and its version is the number of the event: clients detect missed events by
//! their numbers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use undaunted_policy::FailureClass;

use super::context::step_name;
use super::flow::{error, given, outputs_of};
use super::flow_item::{object, token};
use super::flow_plan::flow_plan;
use super::history::History;
use super::projection::{Projection, StepHistory};
use super::time::rfc3339;
use crate::event::{Event, ItemEvent, JobEvent, Record, StepEvent};
use crate::id::StepId;
use crate::job::{Job, JobStage};

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

/// Fields by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct FlowEventData(BTreeMap<&'static str, Value>);

/// The event of a record, if it is one. Job and projection have applied the record.
pub fn flow_event(
    job: &Job,
    projection: &Projection,
    version: u64,
    record: &Record,
) -> Option<FlowEventView> {
    let mut data = FlowEventData::default();
    data.put("flow_id", job.id());
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
    fn put(&mut self, name: &'static str, value: impl Serialize) {
        // The keys of every value are texts, so it is always JSON.
        let _ = self.0.insert(name, serde_json::to_value(value).unwrap_or_default());
    }

    fn add_job(&mut self, job: &Job, projection: &Projection, event: &JobEvent) -> Option<&'static str> {
        if let JobEvent::Submitted(_) = event {
            self.put("plan", flow_plan(job));
            if let Some(flow) = &job.workflow().flow {
                self.put("init", &flow.init);
            }
            return Some("flow_started");
        }
        let (stage, _) = event.ended()?;
        if stage == JobStage::Completed {
            self.put("result", result(job));
            return Some("flow_completed");
        }
        self.put("error", error(job, projection).unwrap_or_default());
        Some("flow_failed")
    }

    fn put_step(&mut self, job: &Job, step: StepId) {
        if let Some(name) = step_name(job, step) {
            self.put("step_id", name);
        }
    }

    fn add_step(&mut self, job: &Job, projection: &Projection, event: &StepEvent) -> Option<&'static str> {
        let step = event.step();
        self.put_step(job, step);
        let before = projection.steps.get(&step);
        Some(match event {
            StepEvent::ItemsRead { last: true, .. } => {
                self.begun(job, projection, step);
                "step_started"
            }
            StepEvent::Completed { .. } => {
                self.put("outputs", outputs_of(job, step));
                self.put("duration", before.and_then(StepHistory::millis).unwrap_or_default());
                "step_completed"
            }
            StepEvent::Failed { .. } | StepEvent::Unreachable { .. } | StepEvent::InputFailed { .. } => {
                self.put("error", before.and_then(StepHistory::error).unwrap_or_default());
                "step_failed"
            }
            StepEvent::Skipped { .. } => {
                self.put("reason", "predicate returned false");
                "step_skipped"
            }
            // Clients take the event for the value of the attribute, which is the first one.
            StepEvent::AttributeSet { name, value, unused, .. } if *unused != Some(true) => {
                self.put("key", name.clone());
                self.put("value", serde_json::from_str::<Value>(value).unwrap_or_default());
                "attribute_set"
            }
            StepEvent::Started { .. }
            | StepEvent::ItemsRead { last: false, .. }
            | StepEvent::AttributeSet { .. }
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
        self.put("work_items", items.collect::<BTreeMap<_, _>>());
        let begun = projection.steps.get(&step);
        let inputs = begun.map(|begun| begun.inputs.clone());
        self.put("inputs", inputs.unwrap_or_default());
    }

    fn add_item(&mut self, job: &Job, projection: &Projection, event: &ItemEvent) -> Option<&'static str> {
        let item = event.item();
        let history = projection.items.items.get(&item);
        let error = || history.and_then(History::error).unwrap_or_default();
        let kind = match event {
            ItemEvent::AttemptStarted(_) => {
                if let Some(step) = job.step(item.step) {
                    self.put("inputs", object(step.items.input(item.index)));
                }
                "work_started"
            }
            ItemEvent::AttemptSucceeded(done) if done.next.is_none() => {
                self.put("outputs", object(done.output.as_deref().unwrap_or("{}")));
                "work_succeeded"
            }
            ItemEvent::ResultArrived(arrived) if arrived.error.is_none() => {
                self.put("outputs", object(arrived.output.as_deref().unwrap_or("{}")));
                "work_succeeded"
            }
            ItemEvent::AttemptFailed(failed) if failed.class != FailureClass::Permanent => {
                self.put("error", error());
                "work_not_completed"
            }
            ItemEvent::RetryScheduled(retrying) => {
                self.put("retry_count", retrying.arithmetic.retry);
                self.put("next_retry_at", rfc3339(retrying.due));
                self.put("error", error());
                "retry_scheduled"
            }
            ItemEvent::DeadLettered { .. } => {
                self.put("error", error());
                "work_failed"
            }
            ItemEvent::AttemptSucceeded(_)
            | ItemEvent::AttemptFailed(_)
            | ItemEvent::AttemptAccepted { .. }
            | ItemEvent::ResultArrived(_)
            | ItemEvent::CommandStopped(_)
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::CommandRecovered { .. }
            | ItemEvent::Succeeded { .. }
            | ItemEvent::Skipped { .. }
            | ItemEvent::Redriven { .. }
            | ItemEvent::Dropped { .. }
            | ItemEvent::Held(_)
            | ItemEvent::Released(_)
            | ItemEvent::LateResult(_)
            | ItemEvent::StartReserved(_)
            | ItemEvent::ReservationWithdrawn(_) => return None,
        };
        self.put_step(job, item.step);
        self.put("token", token(job, projection, item));
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
