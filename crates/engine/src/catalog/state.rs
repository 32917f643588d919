//! The catalog's state, folded from its records.
//!
//! It keeps one entry for each flow and nothing else, so that a hundred thousand flows take little memory. A
//! flow that is archived or removed leaves the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_policy::Timestamp;

use super::record::{CatalogEvent, CatalogRecord, FlowStatus};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Definitions as JSON, by step id.
    pub steps: BTreeMap<String, Arc<str>>,
    /// By step id. A step whose health was never checked has no entry.
    pub health: BTreeMap<String, StepHealth>,
    pub flows: BTreeMap<Arc<str>, FlowEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepHealth {
    pub healthy: bool,
    pub error: Option<String>,
    pub since: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    pub lifecycle: FlowLifecycle,
    pub status: FlowStatus,
    /// When the flow was submitted.
    pub since: Timestamp,
    pub ended: Option<Timestamp>,
    pub error: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// The flow whose step started this one.
    pub parent: Option<String>,
    pub updated: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowLifecycle {
    Active,
    /// The flow has ended, and no attempt of it runs or waits.
    Deactivated,
    Archiving,
}

impl FlowLifecycle {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deactivated => "deactivated",
            Self::Archiving => "archiving",
        }
    }
}

impl Catalog {
    /// The only function that changes a catalog. It cannot fail: an event about a step or a flow that
    /// another process has already removed changes nothing.
    pub fn apply(&mut self, record: &CatalogRecord) {
        match &record.event {
            CatalogEvent::StepRegistered { id, definition } => {
                self.steps.insert(id.clone(), definition.as_str().into());
                self.health.remove(id);
            }
            CatalogEvent::StepUpdated { id, definition } => {
                self.steps.insert(id.clone(), definition.as_str().into());
            }
            CatalogEvent::StepUnregistered { id } => {
                self.steps.remove(id);
                self.health.remove(id);
            }
            CatalogEvent::StepHealthChanged { id, healthy, error } => {
                if self.steps.contains_key(id) {
                    let health = StepHealth { healthy: *healthy, error: error.clone(), since: record.at };
                    self.health.insert(id.clone(), health);
                }
            }
            CatalogEvent::FlowActivated { .. } => self.activate(record),
            CatalogEvent::FlowDeactivated { flow, status, error, ended } => {
                if let Some(entry) = self.flows.get_mut(flow.as_str()) {
                    entry.lifecycle = FlowLifecycle::Deactivated;
                    entry.status = *status;
                    entry.error.clone_from(error);
                    entry.ended = Some(*ended);
                    entry.updated = record.at;
                }
            }
            CatalogEvent::FlowArchiving { flow } => {
                if let Some(entry) = self.flows.get_mut(flow.as_str()) {
                    entry.lifecycle = FlowLifecycle::Archiving;
                    entry.updated = record.at;
                }
            }
            CatalogEvent::FlowArchived { flow, .. } | CatalogEvent::FlowRemoved { flow } => {
                self.flows.remove(flow.as_str());
            }
        }
    }

    fn activate(&mut self, record: &CatalogRecord) {
        let CatalogEvent::FlowActivated { flow, since, labels, parent } = &record.event else { return };
        let mut labels: BTreeMap<String, String> = labels.iter().cloned().collect();
        let mut parent = parent.clone();
        // The event of a resumed flow need not repeat its labels and its parent.
        if let Some(known) = self.flows.get_mut(flow.as_str()) {
            if labels.is_empty() {
                labels = std::mem::take(&mut known.labels);
            }
            parent = parent.or_else(|| known.parent.take());
        }
        let entry = FlowEntry {
            lifecycle: FlowLifecycle::Active,
            status: FlowStatus::Active,
            since: *since,
            ended: None,
            error: None,
            labels,
            parent,
            updated: record.at,
        };
        self.flows.insert(flow.as_str().into(), entry);
    }
}
