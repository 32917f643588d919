//! A store in memory: its contents end with its last handle; otherwise it keeps the whole contract.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::journals::MemoryJournals;
use crate::aggregate::AggregateId;
use crate::append::{Append, AppendError};
use crate::claim::{Claim, ClaimError, Owner};
use crate::error::StoreError;
use crate::requests::{OnFindings, Question, RequestId, StoreRequest};
use crate::store::{FoundSnapshot, Head, Listed, OnAppended, Records, Snapshot, Store};
use crate::version::{Epoch, Version};

#[derive(Debug)]
pub struct MemoryStore {
    journals: Arc<Mutex<MemoryJournals>>,
    /// Journals hold it weakly, so claims end with this handle.
    owner: Arc<Owner>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::on(Arc::default())
    }

    /// Another handle on the same journals, with its own claims, as another process would have.
    pub fn another(&self) -> Self {
        Self::on(Arc::clone(&self.journals))
    }

    fn on(journals: Arc<Mutex<MemoryJournals>>) -> Self {
        Self { journals, owner: Arc::new(Owner::current()) }
    }

    fn journals(&self) -> MutexGuard<'_, MemoryJournals> {
        // Every change is checked before it is made, so a panic leaves no partial change.
        self.journals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn submit(&self, appends: Vec<Append>, done: OnAppended) {
        // Not in one expression: `done` must not run under the lock.
        let result = self.journals().append(appends);
        done(result);
    }

    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError> {
        Ok(self.journals().head(aggregate))
    }

    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError> {
        let records = self.journals().records(aggregate, after);
        Ok(Box::new(records.into_iter().map(Ok)))
    }

    fn list(&self, family: &str, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        Ok(self.journals().list(family, prefix))
    }

    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError> {
        self.journals().trim(aggregate, before);
        Ok(())
    }

    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError> {
        self.journals().remove(aggregate, epoch)
    }

    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError> {
        self.journals().claim(aggregate, Arc::downgrade(&self.owner))
    }

    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError> {
        Ok(self.journals().owner(aggregate))
    }

    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError> {
        self.journals().release(claim);
        Ok(())
    }

    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError> {
        self.journals().request(aggregate, bytes)
    }

    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError> {
        Ok(self.journals().requests(aggregate))
    }

    fn ask(&self, question: Question, done: OnFindings) {
        let findings = self.journals().find(&question, &Arc::downgrade(&self.owner));
        done(Ok(findings));
    }

    fn save_snapshot(&self, aggregate: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.journals().save_snapshot(aggregate, Snapshot { at, bytes })
    }

    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<FoundSnapshot, StoreError> {
        Ok(self.journals().latest_snapshot(aggregate))
    }

    fn pulse(&self) -> Result<u64, StoreError> {
        Ok(self.journals().changes)
    }
}
