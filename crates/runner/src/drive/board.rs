//! The breakers of the store as all jobs of a loop know them.
//!
//! A breaker is as it is when everything handed over is written: what one job does to it the next one
//! finds done. So jobs of one process never get in each other's way; only another process can be
//! faster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use undaunted_engine::breaker::BreakerState;
use undaunted_store::{Store, Version};

use super::error::DriveError;
use crate::breakers;
use crate::journal::aggregate;

/// What is known of breakers, and of who runs which job.
#[derive(Default)]
pub(super) struct Board {
    known: BTreeMap<Arc<str>, (Version, Option<BreakerState>)>,
    /// How often each is part of something that is being written.
    being_written: BTreeMap<Arc<str>, usize>,
    run: BTreeMap<String, bool>,
}

impl Board {
    /// How many records a breaker has, and what it is, if anybody ever named it.
    pub(super) fn breaker(
        &mut self,
        store: &dyn Store,
        name: &Arc<str>,
    ) -> Result<&(Version, Option<BreakerState>), DriveError> {
        if !self.known.contains_key(name) {
            let known = match breakers::read(store, name)? {
                Some((version, record)) => (version, Some(record.state)),
                None => (Version::default(), None),
            };
            self.known.insert(Arc::clone(name), known);
        }
        // It was put there.
        Ok(self.known.entry(Arc::clone(name)).or_default())
    }

    /// A breaker was handed over to be written, and is this then.
    pub(super) fn hand_over(
        &mut self,
        name: &Arc<str>,
        version: Version,
        state: Option<BreakerState>,
    ) {
        self.known.insert(Arc::clone(name), (version, state));
    }

    /// These are being written.
    pub(super) fn begin_writing(&mut self, names: &BTreeSet<Arc<str>>) {
        for name in names {
            let many = self.being_written.entry(Arc::clone(name)).or_default();
            *many = many.saturating_add(1);
        }
    }

    /// These are written, or are not.
    pub(super) fn end_writing(&mut self, names: &BTreeSet<Arc<str>>) {
        for name in names {
            if let Some(many) = self.being_written.get_mut(name) {
                *many = many.saturating_sub(1);
            }
        }
        self.being_written.retain(|_, many| *many > 0);
    }

    /// Others may have changed anything; but what is being written stands until that is known. Whether
    /// everything was forgotten.
    pub(super) fn look_again(&mut self) -> bool {
        let being_written = &self.being_written;
        self.known
            .retain(|name, _| being_written.contains_key(name));
        self.known.is_empty()
    }

    /// Nothing that was known counts any more.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Whoever dies changes nothing in the store.
    pub(super) fn forget_who_runs(&mut self) {
        self.run.clear();
    }

    /// Whether somebody who lives runs a job.
    pub(super) fn is_run(&mut self, store: &dyn Store, job: &str) -> Result<bool, DriveError> {
        if let Some(run) = self.run.get(job) {
            return Ok(*run);
        }
        let run = store.owner(&aggregate(job)?)?.is_some();
        self.run.insert(job.to_owned(), run);
        Ok(run)
    }
}
