//! What happens in the catalog, as events that clients follow.
//!
//! A record is one event, so the number of the record is the number of the event: a client sees by the
//! numbers alone what it has missed.

use serde_json::{Map, Value, json};
use undaunted_engine::catalog::{CatalogEvent, CatalogRecord};
use undaunted_engine::view::rfc3339;
use undaunted_store::Version;

use crate::answer::{object, put};
use crate::subscription::FollowedAggregate;

/// The part of the catalog that an event is about.
pub(crate) const fn part_of(event: &CatalogEvent) -> FollowedAggregate {
    match event {
        CatalogEvent::StepRegistered { .. }
        | CatalogEvent::StepUpdated { .. }
        | CatalogEvent::StepUnregistered { .. } => FollowedAggregate::Catalog,
        CatalogEvent::StepHealthChanged { .. }
        | CatalogEvent::FlowActivated { .. }
        | CatalogEvent::FlowDeactivated { .. }
        | CatalogEvent::FlowArchiving { .. }
        | CatalogEvent::FlowArchived { .. }
        | CatalogEvent::FlowRemoved { .. } => FollowedAggregate::Partition,
    }
}

pub fn catalog_event(version: Version, record: &CatalogRecord) -> Value {
    let data = match &record.event {
        CatalogEvent::StepRegistered { definition, .. } | CatalogEvent::StepUpdated { definition, .. } => {
            json!({ "step": object(definition) })
        }
        CatalogEvent::StepUnregistered { id } => json!({ "step_id": id }),
        CatalogEvent::StepHealthChanged { id, healthy, error } => {
            let status = if *healthy { "healthy" } else { "unhealthy" };
            let mut data = json!({ "step_id": id, "status": status });
            put(&mut data, "error", error.as_deref());
            data
        }
        CatalogEvent::FlowActivated { flow, labels, parent, .. } => {
            let labels = labels.iter();
            let labels = labels.map(|(name, value)| (name.clone(), value.as_str().into()));
            let labels: Map<String, Value> = labels.collect();
            let mut data = json!({ "flow_id": flow, "labels": labels });
            put(&mut data, "parent_flow_id", parent.as_deref());
            data
        }
        CatalogEvent::FlowDeactivated { flow, status, error, ended } => {
            let ended = rfc3339(*ended);
            let mut data = json!({ "flow_id": flow, "status": status.word(), "completed_at": ended });
            put(&mut data, "error", error.as_deref());
            data
        }
        CatalogEvent::FlowArchiving { flow }
        | CatalogEvent::FlowArchived { flow, .. }
        | CatalogEvent::FlowRemoved { flow } => {
            json!({ "flow_id": flow })
        }
    };
    json!({
        "type": record.event.word(),
        "data": data,
        "id": ["engine"],
        "timestamp": record.at.as_millis(),
        "sequence": version.0,
    })
}

#[cfg(test)]
mod tests;
