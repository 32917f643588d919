//! What happens to a flow and in the catalog, as events that clients follow.
//!
//! A record is one event at most, so the number of the record is the number of the event: a client sees
//! by the numbers alone what it has missed.

use serde_json::{Map, Value, json};
use undaunted_engine::catalog::{CatalogEvent, CatalogRecord};
use undaunted_engine::event::{Event, ItemEvent, JobEvent, Record, StepEvent};
use undaunted_engine::id::StepId;
use undaunted_engine::job::Job;
use undaunted_engine::view::rfc3339;
use undaunted_policy::{Class, Timestamp};
use undaunted_store::Version;

use crate::flow_plan::plan;
use crate::flow_state::{FlowState, given, object, put};

/// The event of a flow's record, if there is one. State and job have applied the record.
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
    match event {
        Event::Job(event) => told_of_job(state, job, event),
        Event::Step(event) => told_of_step(state, job, event),
        Event::Item(event) => told_of_item(state, job, event),
        Event::Breaker(_) => None,
    }
}

fn told_of_job(state: &FlowState, job: &Job, event: &JobEvent) -> Option<(&'static str, Value)> {
    match event {
        JobEvent::Submitted(_) => {
            let init = job.workflow().flow.as_ref().map(|flow| &flow.init);
            let data = json!({ "plan": plan(job).json(), "init": init });
            Some(("flow_started", data))
        }
        JobEvent::Completed(_) | JobEvent::Partial(_) => {
            Some(("flow_completed", json!({ "result": result(job) })))
        }
        JobEvent::Failed(_) | JobEvent::Cancelled(_) => {
            let error = state.error().unwrap_or_default();
            Some(("flow_failed", json!({ "error": error })))
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

fn told_of_step(state: &FlowState, job: &Job, event: &StepEvent) -> Option<(&'static str, Value)> {
    let step = event.step();
    let mut data = of_step(job, step);
    let kind = match event {
        StepEvent::ItemsRead { last: true, .. } => {
            started(state, job, step, &mut data);
            "step_started"
        }
        StepEvent::Completed { .. } => {
            put(&mut data, "outputs", Some(Value::Object(given(job, step))));
            put(&mut data, "duration", state.duration_of(step).or(Some(0)));
            "step_completed"
        }
        StepEvent::Failed { .. }
        | StepEvent::Unreachable { .. }
        | StepEvent::InputFailed { .. } => {
            put(&mut data, "error", state.error_of(step).or(Some("")));
            "step_failed"
        }
        StepEvent::Skipped { .. } => {
            put(&mut data, "reason", Some("predicate returned false"));
            "step_skipped"
        }
        StepEvent::AttributeSet { name, value, .. } => {
            put(&mut data, "key", Some(name.as_str()));
            let value: Value = serde_json::from_str(value).unwrap_or_default();
            put(&mut data, "value", Some(value));
            "attribute_set"
        }
        StepEvent::Started { .. }
        | StepEvent::ItemsRead { last: false, .. }
        | StepEvent::CompletionReached(_) => return None,
    };
    Some((kind, data))
}

fn told_of_item(state: &FlowState, job: &Job, event: &ItemEvent) -> Option<(&'static str, Value)> {
    let item = event.item();
    let mut data = of_step(job, item.step);
    put(&mut data, "token", Some(state.token(job, item)));
    let error = Some(state.error_of_item(item).unwrap_or_default());
    let kind = match event {
        ItemEvent::AttemptStarted(_) => {
            let step = job.step(item.step);
            let inputs = step.map(|step| object(step.items.input(item.index)));
            put(&mut data, "inputs", inputs);
            "work_started"
        }
        ItemEvent::AttemptSucceeded(done) if done.next.is_none() => {
            let outputs = done.output.as_deref().unwrap_or("{}");
            put(&mut data, "outputs", Some(object(outputs)));
            "work_succeeded"
        }
        ItemEvent::AttemptFailed(failed) if failed.class != Class::Permanent => {
            put(&mut data, "error", error);
            "work_not_completed"
        }
        ItemEvent::RetryScheduled(retrying) => {
            put(&mut data, "retry_count", Some(retrying.sum.retry));
            put(&mut data, "next_retry_at", Some(rfc3339(retrying.due)));
            put(&mut data, "error", error);
            "retry_scheduled"
        }
        ItemEvent::DeadLettered { .. } => {
            put(&mut data, "error", error);
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
    Some((kind, data))
}

fn started(state: &FlowState, job: &Job, step: StepId, data: &mut Value) {
    let items = job.step(step).into_iter().flat_map(|found| {
        let items = found.items.iter();
        items.map(|(index, _)| {
            let inputs = object(found.items.input(index));
            (state.token(job, step.item(index)), inputs)
        })
    });
    let items: Map<String, Value> = items.collect();
    put(data, "inputs", Some(state.inputs_of(step)));
    put(data, "work_items", Some(items));
}

fn result(job: &Job) -> Map<String, Value> {
    let goals = job.workflow().flow.iter().flat_map(|flow| &flow.goals);
    let steps = || StepId::all().zip(&job.workflow().steps);
    let goals = goals.filter_map(|goal| steps().find(|(_, step)| step.name == *goal));
    goals.flat_map(|(step, _)| given(job, step)).collect()
}

fn of_step(job: &Job, step: StepId) -> Value {
    let name = job.plan().step(step).map(|step| step.name.as_str());
    json!({ "step_id": name })
}

#[cfg(test)]
mod tests;
