//! What the store says at one moment, asked once however many jobs want to know.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_engine::breaker::BreakerRecord;
use undaunted_store::{Store, Version};

use super::error::DriveError;
use crate::breakers;
use crate::journal::aggregate;

/// What was asked so far.
pub(super) struct Glance<'s> {
    pub(super) store: &'s dyn Store,
    breakers: BTreeMap<Arc<str>, Option<(Version, BreakerRecord)>>,
    run: BTreeMap<String, bool>,
}

impl<'s> Glance<'s> {
    pub(super) const fn at(store: &'s dyn Store) -> Self {
        Self {
            store,
            breakers: BTreeMap::new(),
            run: BTreeMap::new(),
        }
    }

    /// What a breaker is, and how many records it has.
    pub(super) fn breaker(
        &mut self,
        name: &Arc<str>,
    ) -> Result<Option<&(Version, BreakerRecord)>, DriveError> {
        if !self.breakers.contains_key(name) {
            let known = breakers::read(self.store, name)?;
            self.breakers.insert(Arc::clone(name), known);
        }
        Ok(self.breakers.get(name).and_then(Option::as_ref))
    }

    /// Whether somebody who lives runs a job.
    pub(super) fn is_run(&mut self, job: &str) -> Result<bool, DriveError> {
        if let Some(run) = self.run.get(job) {
            return Ok(*run);
        }
        let run = self.store.owner(&aggregate(job)?)?.is_some();
        self.run.insert(job.to_owned(), run);
        Ok(run)
    }
}
