//! The engine as a whole: the registered steps, their health, and the flows.

use serde_json::{Map, Value, json};
use undaunted_engine::catalog::{Catalog, FlowEntry, FlowPlace, StepHealth};
use undaunted_engine::view::{attribute_links, rfc3339};
use undaunted_policy::Timestamp;

use crate::answer::{json_of, object, put};

pub(crate) fn state(catalog: &Catalog) -> Value {
    let steps = catalog.steps.iter();
    let steps = steps.map(|(id, definition)| (id.clone(), object(definition)));
    let steps: Map<String, Value> = steps.collect();
    let links = attribute_links(steps.iter().map(|(id, step)| (step, id.as_str())));
    let mut active = Map::new();
    let mut deactivated = Vec::new();
    let mut archiving = Map::new();
    let mut digests = Map::new();
    for (flow, entry) in &catalog.flows {
        let _ = digests.insert(flow.to_string(), digest(entry));
        let updated = rfc3339(entry.updated);
        match entry.place {
            FlowPlace::Active => {
                let since = rfc3339(entry.since);
                let mut shown = json!({ "started_at": since, "last_active": updated });
                put(&mut shown, "parent_flow_id", entry.parent.as_deref());
                let _ = active.insert(flow.to_string(), shown);
            }
            FlowPlace::Deactivated => {
                let mut shown = json!({ "flow_id": &**flow, "deactivated_at": updated });
                put(&mut shown, "parent_flow_id", entry.parent.as_deref());
                deactivated.push(shown);
            }
            FlowPlace::Archiving => {
                let _ = archiving.insert(flow.to_string(), updated.into());
            }
        }
    }
    json!({
        "last_updated": last(catalog).map(rfc3339),
        "steps": steps,
        "attributes": json_of(&links),
        "health": all_health(catalog),
        "active": active,
        "deactivated": deactivated,
        "archiving": archiving,
        "flow_digests": digests,
    })
}

pub(crate) fn digest(entry: &FlowEntry) -> Value {
    let mut digest = json!({
        "status": entry.status.word(),
        "created_at": rfc3339(entry.since),
        "completed_at": entry.ended.map(rfc3339),
        "labels": entry.labels,
    });
    put(&mut digest, "error", entry.error.as_deref());
    digest
}

pub(crate) fn all_health(catalog: &Catalog) -> Map<String, Value> {
    let steps = catalog.steps.keys();
    steps
        .map(|id| (id.clone(), health(catalog.health.get(id))))
        .collect()
}

/// `None` for a step that was not checked yet.
pub(crate) fn health(found: Option<&StepHealth>) -> Value {
    let status = match found {
        None => "unknown",
        Some(found) if found.healthy => "healthy",
        Some(_) => "unhealthy",
    };
    let mut health = json!({ "status": status });
    let error = found.and_then(|found| found.error.as_deref());
    put(&mut health, "error", error);
    health
}

fn last(catalog: &Catalog) -> Option<Timestamp> {
    let flows = catalog.flows.values().map(|entry| entry.updated);
    let health = catalog.health.values().map(|health| health.since);
    flows.chain(health).max()
}
