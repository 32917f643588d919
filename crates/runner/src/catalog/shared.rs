//! The catalog as one process knows it, shared by its readers and the writer thread.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use undaunted_engine::catalog::{Catalog, CatalogRecord};
use undaunted_store::{Store, Version};

use super::draft::Draft;
use super::journal;
use super::task::CatalogTask;
use crate::clock::Clock;
use crate::journal::JournalError;

pub(super) struct SharedCatalog {
    pub(super) store: Arc<dyn Store>,
    clock: Clock,
    known: RwLock<CatalogAtVersion>,
}

/// The catalog at a version that is on disk.
#[derive(Default)]
pub(super) struct CatalogAtVersion {
    pub(super) catalog: Catalog,
    pub(super) version: Version,
    /// The store's pulse before records were last read. While it is the same, so is the catalog.
    pulse: Option<u64>,
}

impl SharedCatalog {
    pub(super) fn open(store: Arc<dyn Store>) -> Result<Self, JournalError> {
        let mut known = CatalogAtVersion { pulse: Some(store.pulse()?), ..CatalogAtVersion::default() };
        journal::follow(&*store, Version::EMPTY, |version, record| {
            known.apply(version, &record);
        })?;
        Ok(Self { store, clock: Clock::set(), known: RwLock::new(known) })
    }

    pub(super) fn known(&self) -> RwLockReadGuard<'_, CatalogAtVersion> {
        // Unwinding drops a `Draft`, which undoes its changes, so a panic leaves no change half done.
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, CatalogAtVersion> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads new records, unless the pulse says that there are none.
    pub(super) fn catch_up(&self) -> Result<(), JournalError> {
        let pulse = self.store.pulse()?;
        if self.known().pulse == Some(pulse) {
            return Ok(());
        }
        self.look()?;
        // The earlier pulse, so that records written meanwhile are found the next time.
        self.change().pulse = Some(pulse);
        Ok(())
    }

    /// Reads new records and returns the version reached.
    pub(super) fn look(&self) -> Result<Version, JournalError> {
        let version = self.known().version;
        let head = self.store.head(&journal::aggregate()?)?.unwrap_or_default();
        if head.version > version {
            let records = journal::records(&*self.store, version)?;
            self.apply(records);
        }
        Ok(self.known().version)
    }

    /// Applies stored records. Two threads may have read the same ones.
    pub(super) fn apply(&self, records: impl IntoIterator<Item = (Version, CatalogRecord)>) {
        let mut known = self.change();
        for (version, record) in records {
            known.apply(version, &record);
        }
    }

    /// Decides all tasks, each on the result of those before it. Returns the version they are based
    /// on and the records to append; readers do not see these yet.
    pub(super) fn decide(&self, tasks: &mut [Box<dyn CatalogTask>]) -> (Version, Vec<CatalogRecord>) {
        let at = self.clock.now();
        let mut known = self.change();
        let mut records = Vec::new();
        let version = known.version;
        let mut draft = Draft::of(&mut known.catalog);
        for task in tasks {
            for event in task.decide(draft.catalog()) {
                let record = CatalogRecord { at, event };
                draft.add(&record);
                records.push(record);
            }
        }
        (version, records)
    }
}

impl CatalogAtVersion {
    fn apply(&mut self, version: Version, record: &CatalogRecord) {
        if version == self.version.next() {
            self.catalog.apply(record);
            self.version = version;
        }
    }
}
