//! The contents of a [`MemoryStore`](super::MemoryStore), without locking.

use std::collections::BTreeMap;
use std::sync::Weak;

use crate::aggregate::AggregateId;
use crate::append::{self, Append, AppendError};
use crate::claim::{Claim, ClaimError, Owner};
use crate::error::StoreError;
use crate::requests::{Findings, Question, RequestId, StoreRequest};
use crate::store::{FoundSnapshot, Head, Listed, Snapshot};
use crate::version::{Epoch, Version};

#[derive(Debug, Default)]
pub(super) struct MemoryJournals {
    aggregates: BTreeMap<AggregateId, MemoryJournal>,
    last_epoch: Epoch,
    last_request: u64,
    pub(super) changes: u64,
}

#[derive(Debug, Default)]
struct MemoryJournal {
    epoch: Epoch,
    owner: Weak<Owner>,
    /// The last version that was trimmed.
    trimmed: Version,
    records: Vec<Vec<u8>>,
    requests: Vec<StoreRequest>,
    snapshot: Option<Snapshot>,
}

impl MemoryJournal {
    fn head(&self) -> Head {
        Head { version: self.trimmed.after(self.records.len()), epoch: self.epoch }
    }
}

impl MemoryJournals {
    pub(super) fn append(&mut self, appends: Vec<Append>) -> Result<Vec<Version>, AppendError> {
        // All checks come before the first change, so there is nothing to undo.
        let mut planned: BTreeMap<&AggregateId, Head> = BTreeMap::new();
        let mut reached = Vec::with_capacity(appends.len());
        for append in &appends {
            let stored = || self.head(&append.aggregate).unwrap_or_default();
            let head = planned.entry(&append.aggregate).or_insert_with(stored);
            append::check(append, *head)?;
            head.version = append.reaches(head.version);
            reached.push(head.version);
        }
        self.check_taken(&appends)?;
        for append in appends {
            // An empty append does not create its aggregate.
            if append.records.is_empty() && !self.aggregates.contains_key(&append.aggregate) {
                continue;
            }
            let journal = self.aggregates.entry(append.aggregate).or_default();
            journal.records.extend(append.records);
            journal.requests.retain(|r| !append.taken.contains(&r.id));
        }
        self.changed();
        Ok(reached)
    }

    fn check_taken(&self, appends: &[Append]) -> Result<(), AppendError> {
        let mut seen = vec![];
        for append in appends {
            let waiting = self.requests(&append.aggregate);
            for id in &append.taken {
                if seen.contains(id) || !waiting.iter().any(|request| request.id == *id) {
                    return Err(AppendError::AlreadyTaken {
                        aggregate: append.aggregate.clone(),
                        request: *id,
                    });
                }
                seen.push(*id);
            }
        }
        Ok(())
    }

    pub(super) fn head(&self, aggregate: &AggregateId) -> Option<Head> {
        self.aggregates.get(aggregate).map(MemoryJournal::head)
    }

    pub(super) fn records(&self, aggregate: &AggregateId, after: Version) -> Vec<(Version, Vec<u8>)> {
        let Some(journal) = self.aggregates.get(aggregate) else {
            return vec![];
        };
        let records = journal.records.iter().enumerate();
        records
            .map(|(index, record)| (journal.trimmed.after(index).next(), record))
            .filter(|(version, _)| *version > after)
            .map(|(version, record)| (version, record.clone()))
            .collect()
    }

    pub(super) fn list(&self, family: &str, prefix: &str) -> Vec<Listed> {
        let all = self.aggregates.iter();
        all.filter(|(aggregate, journal)| {
            aggregate.family() == family && aggregate.id().starts_with(prefix) && !journal.records.is_empty()
        })
        .map(|(aggregate, journal)| Listed { aggregate: aggregate.clone(), head: journal.head() })
        .collect()
    }

    pub(super) fn trim(&mut self, aggregate: &AggregateId, before: Version) {
        let Some(journal) = self.aggregates.get_mut(aggregate) else {
            return;
        };
        // The last record is never trimmed.
        let end = before.min(journal.head().version).0.saturating_sub(1);
        let Some(more) = end.checked_sub(journal.trimmed.0).filter(|more| *more > 0) else {
            return;
        };
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        journal.records.drain(..more.min(journal.records.len()));
        journal.trimmed = Version(end);
        self.changed();
    }

    pub(super) fn remove(&mut self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError> {
        let Some(head) = self.head(aggregate) else {
            return Ok(());
        };
        append::fenced(aggregate, epoch, head)?;
        self.aggregates.remove(aggregate);
        self.changed();
        Ok(())
    }

    pub(super) fn claim(&mut self, aggregate: &AggregateId, owner: Weak<Owner>) -> Result<Claim, ClaimError> {
        let journal = self.aggregates.entry(aggregate.clone()).or_default();
        if let Some(living) = journal.owner.upgrade() {
            return Err(ClaimError::OwnedBy { aggregate: aggregate.clone(), owner: Owner::clone(&living) });
        }
        self.last_epoch = self.last_epoch.next();
        journal.owner = owner;
        journal.epoch = self.last_epoch;
        let claim =
            Claim { aggregate: aggregate.clone(), epoch: journal.epoch, version: journal.head().version };
        self.changed();
        Ok(claim)
    }

    pub(super) fn owner(&self, aggregate: &AggregateId) -> Option<Owner> {
        let living = self.aggregates.get(aggregate)?.owner.upgrade()?;
        Some(Owner::clone(&living))
    }

    pub(super) fn release(&mut self, claim: &Claim) {
        if let Some(journal) = self.aggregates.get_mut(&claim.aggregate)
            && journal.epoch == claim.epoch
        {
            journal.owner = Weak::new();
            self.changed();
        }
    }

    pub(super) fn request(
        &mut self,
        aggregate: &AggregateId,
        bytes: Vec<u8>,
    ) -> Result<RequestId, StoreError> {
        let journal = self
            .aggregates
            .get_mut(aggregate)
            .filter(|journal| !journal.records.is_empty())
            .ok_or_else(|| StoreError::NotFound { aggregate: aggregate.clone() })?;
        self.last_request = self.last_request.saturating_add(1);
        let id = RequestId(self.last_request);
        journal.requests.push(StoreRequest { id, bytes });
        self.changed();
        Ok(id)
    }

    pub(super) fn requests(&self, aggregate: &AggregateId) -> Vec<StoreRequest> {
        let journal = self.aggregates.get(aggregate);
        journal.map_or_else(Vec::new, |journal| journal.requests.clone())
    }

    pub(super) fn find(&self, question: &Question, asks: &Weak<Owner>) -> Findings {
        let mut findings = Findings { pulse: self.changes, ..Findings::default() };
        let unowned = |awaited: &&AggregateId| self.owner(awaited).is_none();
        findings.unowned = question.awaits.iter().filter(unowned).cloned().collect();
        if question.since == Some(self.changes) {
            return findings;
        }
        for (aggregate, journal) in &self.aggregates {
            if journal.owner.ptr_eq(asks) && !journal.requests.is_empty() {
                let requests = Ok(journal.requests.clone());
                findings.requests.insert(aggregate.clone(), requests);
            }
        }
        for (aggregate, after) in &question.follows {
            let records = self.records(aggregate, *after);
            if !records.is_empty() {
                findings.records.insert(aggregate.clone(), Ok(records));
            }
        }
        findings
    }

    pub(super) fn save_snapshot(
        &mut self,
        aggregate: &AggregateId,
        snapshot: Snapshot,
    ) -> Result<(), StoreError> {
        let journal = self
            .aggregates
            .get_mut(aggregate)
            .ok_or_else(|| StoreError::NotFound { aggregate: aggregate.clone() })?;
        let head = journal.head().version;
        if snapshot.at > head {
            return Err(StoreError::AheadOfJournal { aggregate: aggregate.clone(), at: snapshot.at, head });
        }
        let stored = journal.snapshot.as_ref();
        if stored.is_none_or(|stored| stored.at <= snapshot.at) {
            journal.snapshot = Some(snapshot);
        }
        Ok(())
    }

    pub(super) fn latest_snapshot(&self, aggregate: &AggregateId) -> FoundSnapshot {
        let journal = self.aggregates.get(aggregate);
        FoundSnapshot { latest: journal.and_then(|journal| journal.snapshot.clone()), ignored: vec![] }
    }

    fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }
}
