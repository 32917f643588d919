//! What happens to a flow and in the catalog, as events that clients follow.
//!
//! A record is one event at most, so that the number of the record is the number of the event: what a
//! client has seen, and what it has missed, can be told by the numbers alone.

use serde_json::{Map, Value, json};
use undaunted_engine::catalog::{CatalogEvent, CatalogRecord};
use undaunted_engine::event::{Event, Record, Subject};
use undaunted_engine::job::Job;
use undaunted_engine::view::rfc3339;
use undaunted_policy::{Class, Timestamp};
use undaunted_store::Version;

use crate::flow_plan::plan;
use crate::flow_state::{FlowState, given, object, put};

/// The event a record of a flow is, if it is one. State and job are as they are after it.
#[must_use]
pub fn flow_event(
    state: &FlowState,
    job: &Job,
    version: Version,
    record: &Record,
) -> Option<Value> {
    let (kind, mut data) = told(state, job, &record.event)?;
    put(&mut data, "flow_id", Some(job.id()));
    let id = json!(["flow", job.id()]);
    Some(envelope(kind, &data, &id, record.at, version))
}

/// The event a record of the catalog is.
#[must_use]
pub fn catalog_event(version: Version, record: &CatalogRecord) -> Value {
    let data = match &record.event {
        CatalogEvent::StepRegistered { definition, .. }
        | CatalogEvent::StepUpdated { definition, .. } => json!({ "step": object(definition) }),
        CatalogEvent::StepUnregistered { id } => json!({ "step_id": id }),
        CatalogEvent::StepHealthChanged { id, healthy, error } => {
            let status = if *healthy { "healthy" } else { "unhealthy" };
            let mut data = json!({ "step_id": id, "status": status });
            put(&mut data, "error", error.as_deref());
            data
        }
        CatalogEvent::FlowActivated {
            flow,
            labels,
            parent,
            ..
        } => {
            let labels = labels.iter();
            let labels = labels.map(|(name, value)| (name.clone(), value.as_str().into()));
            let labels: Map<String, Value> = labels.collect();
            let mut data = json!({ "flow_id": flow, "labels": labels });
            put(&mut data, "parent_flow_id", parent.as_deref());
            data
        }
        CatalogEvent::FlowDeactivated {
            flow,
            status,
            error,
            ended,
        } => {
            let ended = rfc3339(*ended);
            let mut data =
                json!({ "flow_id": flow, "status": status.word(), "completed_at": ended });
            put(&mut data, "error", error.as_deref());
            data
        }
        CatalogEvent::FlowArchiving { flow }
        | CatalogEvent::FlowArchived { flow, .. }
        | CatalogEvent::FlowRemoved { flow } => {
            json!({ "flow_id": flow })
        }
    };
    envelope(
        record.event.word(),
        &data,
        &json!(["engine"]),
        record.at,
        version,
    )
}

fn envelope(kind: &str, data: &Value, id: &Value, at: Timestamp, version: Version) -> Value {
    json!({
        "type": kind,
        "data": data,
        "id": id,
        "timestamp": at.as_millis(),
        "sequence": version.0,
    })
}

fn told(state: &FlowState, job: &Job, event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::JobSubmitted(_) => {
            let init = job.workflow().flow.as_ref().map(|flow| &flow.init);
            let data = json!({ "plan": plan(job).json(), "init": init });
            ("flow_started", data)
        }
        Event::ItemsRead {
            step, last: true, ..
        } => ("step_started", started(state, job, *step)),
        Event::StepCompleted { step } => {
            let mut data = of_step(job, *step);
            put(&mut data, "outputs", Some(Value::Object(given(job, *step))));
            put(&mut data, "duration", state.duration_of(*step).or(Some(0)));
            ("step_completed", data)
        }
        Event::StepFailed { step }
        | Event::StepUnreachable { step, .. }
        | Event::InputFailed { step, .. } => {
            let mut data = of_step(job, *step);
            put(&mut data, "error", state.error_of(*step).or(Some("")));
            ("step_failed", data)
        }
        Event::StepSkipped { step } => {
            let mut data = of_step(job, *step);
            put(&mut data, "reason", Some("predicate returned false"));
            ("step_skipped", data)
        }
        Event::AttributeSet { step, name, value } => {
            let mut data = of_step(job, *step);
            put(&mut data, "key", Some(name.as_str()));
            let value: Value = serde_json::from_str(value).unwrap_or_default();
            put(&mut data, "value", Some(value));
            ("attribute_set", data)
        }
        Event::JobCompleted(_) | Event::JobPartial(_) => {
            ("flow_completed", json!({ "result": result(job) }))
        }
        Event::JobFailed(_) | Event::JobCancelled(_) => {
            let error = state.error().unwrap_or_default();
            ("flow_failed", json!({ "error": error }))
        }
        event => return told_of_item(state, job, event),
    })
}

fn told_of_item(state: &FlowState, job: &Job, event: &Event) -> Option<(&'static str, Value)> {
    let error = |of: Subject| {
        let error = state.error_of_item(of.step, of.item);
        Some(error.unwrap_or_default())
    };
    Some(match event {
        Event::AttemptStarted(started) => {
            let of = started.subject;
            let mut data = of_item(state, job, of);
            let inputs = job.step(of.step).map(|it| object(it.items.input(of.item)));
            put(&mut data, "inputs", inputs);
            ("work_started", data)
        }
        Event::AttemptSucceeded(done) if done.next.is_none() => {
            let mut data = of_item(state, job, done.subject);
            let outputs = done.output.as_deref().unwrap_or("{}");
            put(&mut data, "outputs", Some(object(outputs)));
            ("work_succeeded", data)
        }
        Event::AttemptFailed(failed) if failed.class != Class::Permanent => {
            let mut data = of_item(state, job, failed.subject);
            put(&mut data, "error", error(failed.subject));
            ("work_not_completed", data)
        }
        Event::RetryScheduled(retrying) => {
            let of = retrying.subject;
            let mut data = of_item(state, job, of);
            put(&mut data, "retry_count", Some(retrying.sum.retry));
            put(&mut data, "next_retry_at", Some(rfc3339(retrying.due)));
            put(&mut data, "error", error(of));
            ("retry_scheduled", data)
        }
        Event::ItemDeadLettered { subject, .. } => {
            let mut data = of_item(state, job, *subject);
            put(&mut data, "error", error(*subject));
            ("work_failed", data)
        }
        _ => return None,
    })
}

fn started(state: &FlowState, job: &Job, step: u32) -> Value {
    let items = job.step(step).into_iter().flat_map(|found| {
        let items = found.items.iter();
        items.map(|(item, _)| {
            let inputs = object(found.items.input(item));
            (state.token(job, step, item), inputs)
        })
    });
    let items: Map<String, Value> = items.collect();
    let mut data = of_step(job, step);
    put(&mut data, "inputs", Some(state.inputs_of(step)));
    put(&mut data, "work_items", Some(items));
    data
}

/// What the goals have given, all of it together.
fn result(job: &Job) -> Map<String, Value> {
    let goals = job.workflow().flow.iter().flat_map(|flow| &flow.goals);
    let steps = || (0_u32..).zip(&job.workflow().steps);
    let goals = goals.filter_map(|goal| steps().find(|(_, step)| step.name == *goal));
    goals.flat_map(|(step, _)| given(job, step)).collect()
}

fn of_step(job: &Job, step: u32) -> Value {
    let name = job.plan().step(step).map(|step| step.name.as_str());
    json!({ "step_id": name })
}

fn of_item(state: &FlowState, job: &Job, of: Subject) -> Value {
    let mut data = of_step(job, of.step);
    let token = state.token(job, of.step, of.item);
    put(&mut data, "token", Some(token));
    data
}

#[cfg(test)]
mod tests;
