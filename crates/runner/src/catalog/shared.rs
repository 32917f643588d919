//! The catalog as one process knows it, shared by those who read it and the thread that writes it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use undaunted_engine::catalog::{Catalog, CatalogRecord};
use undaunted_store::{Store, Version};

use super::draft::Draft;
use super::pages;
use super::wish::Wish;
use crate::clock::Clock;
use crate::journal::JournalError;

/// What is known of the catalog, and where the rest is.
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    clock: Clock,
    known: RwLock<Known>,
}

/// The catalog after so many records. Only what is on the disk.
#[derive(Default)]
pub(super) struct Known {
    pub(super) catalog: Catalog,
    pub(super) version: Version,
    /// The pulse of the store before it was last looked at. While it is the same, so is the catalog.
    pulse: Option<u64>,
}

impl Shared {
    /// Reads the whole catalog.
    pub(super) fn open(store: Arc<dyn Store>) -> Result<Self, JournalError> {
        let mut known = Known {
            pulse: Some(store.pulse()?),
            ..Known::default()
        };
        pages::follow(&*store, Version::EMPTY, |version, record| {
            known.learn(version, &record);
        })?;
        Ok(Self {
            store,
            clock: Clock::set(),
            known: RwLock::new(known),
        })
    }

    pub(super) fn known(&self) -> RwLockReadGuard<'_, Known> {
        // What is on trial is taken back by whoever unwinds, so a panic leaves nothing half done.
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what others have written since, if anybody has written anything.
    pub(super) fn catch_up(&self) -> Result<(), JournalError> {
        let pulse = self.store.pulse()?;
        if self.known().pulse == Some(pulse) {
            return Ok(());
        }
        self.look()?;
        // The pulse from before: what was written while we looked is looked for the next time.
        self.change().pulse = Some(pulse);
        Ok(())
    }

    /// Reads what others have written since, and says how many records there are.
    pub(super) fn look(&self) -> Result<Version, JournalError> {
        let version = self.known().version;
        let head = self.store.head(&pages::aggregate()?)?.unwrap_or_default();
        if head.version > version {
            let records = pages::records(&*self.store, version)?;
            self.learn(records);
        }
        Ok(self.known().version)
    }

    /// Takes in records that are on the disk. Two may have read the same ones.
    pub(super) fn learn(&self, records: impl IntoIterator<Item = (Version, CatalogRecord)>) {
        let mut known = self.change();
        for (version, record) in records {
            known.learn(version, &record);
        }
    }

    /// Decides everything that is wished for, each on what the ones before it lead to: the version
    /// on which that stands, and what has to be written. Nobody else sees it yet.
    pub(super) fn decide(&self, wishes: &mut [Box<dyn Wish>]) -> (Version, Vec<CatalogRecord>) {
        let at = self.clock.now();
        let mut known = self.change();
        let mut records = Vec::new();
        let version = known.version;
        let mut draft = Draft::of(&mut known.catalog);
        for wish in wishes {
            for event in wish.decide(draft.catalog()) {
                let record = CatalogRecord { at, event };
                draft.add(&record);
                records.push(record);
            }
        }
        (version, records)
    }
}

impl Known {
    fn learn(&mut self, version: Version, record: &CatalogRecord) {
        if version == self.version.next() {
            self.catalog.apply(record);
            self.version = version;
        }
    }
}
