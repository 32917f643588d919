//! A catalog with changes that are not committed yet.
//!
//! Copying a catalog of a hundred thousand flows for every change would be a waste, so a [`Draft`]
//! changes it in place and undoes that when dropped: readers see only what is on the disk.

use std::sync::Arc;

use undaunted_engine::catalog::{Catalog, CatalogEvent, CatalogRecord, FlowEntry, StepHealth};

pub(super) struct Draft<'a> {
    catalog: &'a mut Catalog,
    undo: Vec<UndoEntry>,
}

enum UndoEntry {
    Step { id: String, definition: Option<Arc<str>>, health: Option<StepHealth> },
    Flow { id: String, entry: Option<FlowEntry> },
}

impl<'a> Draft<'a> {
    pub(super) const fn of(catalog: &'a mut Catalog) -> Self {
        Self { catalog, undo: Vec::new() }
    }

    pub(super) const fn catalog(&self) -> &Catalog {
        self.catalog
    }

    pub(super) fn add(&mut self, record: &CatalogRecord) {
        self.undo.push(UndoEntry::of(self.catalog, &record.event));
        self.catalog.apply(record);
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        for entry in self.undo.drain(..).rev() {
            entry.undo(self.catalog);
        }
    }
}

impl UndoEntry {
    fn of(catalog: &Catalog, event: &CatalogEvent) -> Self {
        match event {
            CatalogEvent::StepRegistered { id, .. }
            | CatalogEvent::StepUpdated { id, .. }
            | CatalogEvent::StepUnregistered { id }
            | CatalogEvent::StepHealthChanged { id, .. } => Self::Step {
                id: id.clone(),
                definition: catalog.steps.get(id).cloned(),
                health: catalog.health.get(id).cloned(),
            },
            CatalogEvent::FlowActivated { flow, .. }
            | CatalogEvent::FlowDeactivated { flow, .. }
            | CatalogEvent::FlowArchiving { flow }
            | CatalogEvent::FlowArchived { flow, .. }
            | CatalogEvent::FlowRemoved { flow } => {
                Self::Flow { id: flow.clone(), entry: catalog.flows.get(flow.as_str()).cloned() }
            }
        }
    }

    fn undo(self, catalog: &mut Catalog) {
        match self {
            Self::Step { id, definition, health } => {
                match health {
                    Some(health) => catalog.health.insert(id.clone(), health),
                    None => catalog.health.remove(&id),
                };
                match definition {
                    Some(definition) => catalog.steps.insert(id, definition),
                    None => catalog.steps.remove(&id),
                };
            }
            Self::Flow { id, entry } => {
                match entry {
                    Some(entry) => catalog.flows.insert(id.into(), entry),
                    None => catalog.flows.remove(id.as_str()),
                };
            }
        }
    }
}
