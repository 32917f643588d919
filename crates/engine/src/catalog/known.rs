//! What the records of the catalog come to.
//!
//! Nothing is kept for a flow beyond its entry, so that a hundred thousand of them are a small
//! matter; what has left the store leaves the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_policy::Timestamp;

use super::record::{CatalogEvent, CatalogRecord, FlowStatus};

/// The steps and flows of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// How steps are called: their definitions as JSON, by their ids.
    pub steps: BTreeMap<String, Arc<str>>,
    /// How steps were found when they were last looked at. Those nobody has looked at are missing.
    pub health: BTreeMap<String, StepHealth>,
    /// The flows, by their ids.
    pub flows: BTreeMap<Arc<str>, FlowEntry>,
}

/// How a step was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepHealth {
    /// Whether it is there.
    pub healthy: bool,
    /// What was wrong, if something was.
    pub error: Option<String>,
    pub since: Timestamp,
}

/// A flow in the list of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    /// Where it is in its life.
    pub place: FlowPlace,
    pub status: FlowStatus,
    /// When it was submitted.
    pub since: Timestamp,
    pub ended: Option<Timestamp>,
    /// Why it failed, if it has.
    pub error: Option<String>,
    /// By what it is found.
    pub labels: BTreeMap<String, String>,
    /// The flow whose step it is, if it is one's.
    pub parent: Option<String>,
    /// When this entry last changed.
    pub updated: Timestamp,
}

/// Where a flow is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPlace {
    /// Something of it runs or waits.
    Active,
    /// It has ended, and nothing does.
    Deactivated,
    /// It is being moved to a file.
    Archiving,
}

impl FlowPlace {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deactivated => "deactivated",
            Self::Archiving => "archiving",
        }
    }
}

impl Catalog {
    /// Takes in a record; the only function that changes a catalog. It cannot fail: what is said of
    /// a step or a flow that is not there, because somebody else was faster to remove it, changes
    /// nothing.
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
                    let health = StepHealth {
                        healthy: *healthy,
                        error: error.clone(),
                        since: record.at,
                    };
                    self.health.insert(id.clone(), health);
                }
            }
            CatalogEvent::FlowActivated { .. } => self.activate(record),
            CatalogEvent::FlowDeactivated {
                flow,
                status,
                error,
                ended,
            } => {
                if let Some(entry) = self.flows.get_mut(flow.as_str()) {
                    entry.place = FlowPlace::Deactivated;
                    entry.status = *status;
                    entry.error.clone_from(error);
                    entry.ended = Some(*ended);
                    entry.updated = record.at;
                }
            }
            CatalogEvent::FlowArchiving { flow } => {
                if let Some(entry) = self.flows.get_mut(flow.as_str()) {
                    entry.place = FlowPlace::Archiving;
                    entry.updated = record.at;
                }
            }
            CatalogEvent::FlowArchived { flow, .. } | CatalogEvent::FlowRemoved { flow } => {
                self.flows.remove(flow.as_str());
            }
        }
    }

    fn activate(&mut self, record: &CatalogRecord) {
        let CatalogEvent::FlowActivated {
            flow,
            since,
            labels,
            parent,
        } = &record.event
        else {
            return;
        };
        let mut labels: BTreeMap<String, String> = labels.iter().cloned().collect();
        let mut parent = parent.clone();
        // Whoever sets a flow going again need not know what it was called when it was submitted.
        if let Some(known) = self.flows.get_mut(flow.as_str()) {
            if labels.is_empty() {
                labels = std::mem::take(&mut known.labels);
            }
            parent = parent.or_else(|| known.parent.take());
        }
        let entry = FlowEntry {
            place: FlowPlace::Active,
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
