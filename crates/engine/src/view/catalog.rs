//! The catalog in the HTTP API: the registered steps with their health, and lists of flows.
//!
//! The names are those of Argyll. A key that does not apply is omitted.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::flow_item::{object, put_some};
use super::flow_plan::{AttributeLinks, attribute_links};
use super::time::InstantView;
use crate::catalog::{Catalog, FlowEntry, FlowLifecycle, StepHealth};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatalogView {
    last_updated: Option<InstantView>,
    steps: BTreeMap<String, Value>,
    attributes: BTreeMap<String, AttributeLinks>,
    health: BTreeMap<String, StepHealthView>,
    active: BTreeMap<String, Value>,
    deactivated: Vec<Value>,
    archiving: BTreeMap<String, InstantView>,
    flow_digests: BTreeMap<String, FlowDigest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepHealthView {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowDigest {
    status: &'static str,
    created_at: InstantView,
    completed_at: Option<InstantView>,
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A flow in a list: its digest inline, and again in the field that some clients read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowLine {
    id: String,
    #[serde(flatten)]
    inline: FlowDigest,
    digest: FlowDigest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowPage {
    pub count: usize,
    pub flows: Vec<FlowLine>,
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl CatalogView {
    pub fn of(catalog: &Catalog) -> Self {
        let steps = catalog.steps.iter();
        let steps: BTreeMap<String, Value> =
            steps.map(|(id, definition)| (id.clone(), object(definition))).collect();
        let flows = catalog.flows.values().map(|entry| entry.updated);
        let health = catalog.health.values().map(|health| health.since);
        let mut view = Self {
            last_updated: flows.chain(health).max().map(InstantView),
            attributes: attribute_links(steps.iter().map(|(id, step)| (step, id.as_str()))),
            steps,
            health: StepHealthView::of_all(catalog),
            active: BTreeMap::new(),
            deactivated: Vec::new(),
            archiving: BTreeMap::new(),
            flow_digests: BTreeMap::new(),
        };
        for (flow, entry) in &catalog.flows {
            view.add(flow, entry);
        }
        view
    }

    fn add(&mut self, flow: &str, entry: &FlowEntry) {
        let digest = FlowDigest::of(entry);
        let _ = self.flow_digests.insert(flow.to_owned(), digest);
        match entry.lifecycle {
            FlowLifecycle::Active => {
                let (since, updated) = (InstantView(entry.since), InstantView(entry.updated));
                let mut active = json!({ "started_at": since, "last_active": updated });
                put_some(&mut active, "parent_flow_id", entry.parent.as_ref());
                let _ = self.active.insert(flow.to_owned(), active);
            }
            FlowLifecycle::Deactivated => {
                let mut deactivated =
                    json!({ "flow_id": flow, "deactivated_at": InstantView(entry.updated) });
                put_some(&mut deactivated, "parent_flow_id", entry.parent.as_ref());
                self.deactivated.push(deactivated);
            }
            FlowLifecycle::Archiving => {
                let _ = self.archiving.insert(flow.to_owned(), InstantView(entry.updated));
            }
        }
    }
}

impl StepHealthView {
    /// A step that was not checked yet has no health.
    pub fn of(health: Option<&StepHealth>) -> Self {
        Self {
            status: match health {
                None => "unknown",
                Some(health) if health.healthy => "healthy",
                Some(_) => "unhealthy",
            },
            error: health.and_then(|health| health.error.clone()),
        }
    }

    pub fn of_all(catalog: &Catalog) -> BTreeMap<String, Self> {
        let steps = catalog.steps.keys();
        let health = steps.map(|id| (id.clone(), Self::of(catalog.health.get(id))));
        health.collect()
    }
}

impl FlowDigest {
    fn of(entry: &FlowEntry) -> Self {
        Self {
            status: entry.status.word(),
            created_at: InstantView(entry.since),
            completed_at: entry.ended.map(InstantView),
            labels: entry.labels.clone(),
            error: entry.error.clone(),
        }
    }
}

impl FlowLine {
    pub fn of(flow: &str, entry: &FlowEntry) -> Self {
        let digest = FlowDigest::of(entry);
        Self { id: flow.to_owned(), inline: digest.clone(), digest }
    }
}
