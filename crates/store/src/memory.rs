//! A store in memory, for simulation and tests.
//!
//! Its contents end with its last handle; otherwise it keeps the whole contract.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, Findings, FoundSnapshot, Head,
    ListedAggregate, OnAppended, OnFindings, Owner, Question, Records, RequestId, Snapshot, Store,
    StoreError, StoreRequest, Version, append,
};

#[derive(Debug)]
pub struct MemoryStore {
    contents: Arc<Mutex<MemoryContents>>,
    /// Journals hold it weakly, so claims end with this handle.
    owner: Arc<Owner>,
}

#[derive(Debug, Default)]
struct MemoryContents {
    journals: BTreeMap<AggregateId, MemoryJournal>,
    last_epoch: Epoch,
    last_request: u64,
    changes: u64,
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

impl MemoryStore {
    pub fn new() -> Self {
        Self::on(Arc::default())
    }

    /// Another handle on the same journals, with its own claims, as another process would have.
    pub fn another(&self) -> Self {
        Self::on(Arc::clone(&self.contents))
    }

    fn on(contents: Arc<Mutex<MemoryContents>>) -> Self {
        Self { contents, owner: Arc::new(Owner::current()) }
    }

    fn contents(&self) -> MutexGuard<'_, MemoryContents> {
        // Every change is checked before it is made, so a panic leaves no partial change.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryJournal {
    fn head(&self) -> Head {
        Head { version: self.trimmed.after(self.records.len()), epoch: self.epoch }
    }

    fn records(&self, after: Version) -> Vec<(Version, Vec<u8>)> {
        let records = self.records.iter().enumerate();
        records
            .map(|(index, record)| (self.trimmed.after(index).next(), record))
            .filter(|(version, _)| *version > after)
            .map(|(version, record)| (version, record.clone()))
            .collect()
    }
}

impl MemoryContents {
    fn append(&mut self, appends: Vec<Append>) -> Result<Vec<Version>, AppendError> {
        // All checks come before the first change, so there is nothing to undo.
        let mut planned: BTreeMap<&AggregateId, Head> = BTreeMap::new();
        let mut reached = Vec::with_capacity(appends.len());
        for append in &appends {
            let journal = self.journals.get(&append.aggregate);
            let stored = || journal.map_or_else(Head::default, MemoryJournal::head);
            let head = planned.entry(&append.aggregate).or_insert_with(stored);
            append::check(append, *head)?;
            head.version = append.reaches(head.version);
            reached.push(head.version);
        }
        self.check_taken(&appends)?;
        for append in appends {
            // An empty append does not create its aggregate.
            if append.records.is_empty() && !self.journals.contains_key(&append.aggregate) {
                continue;
            }
            let journal = self.journals.entry(append.aggregate).or_default();
            journal.records.extend(append.records);
            journal.requests.retain(|r| !append.taken.contains(&r.id));
        }
        self.changed();
        Ok(reached)
    }

    fn check_taken(&self, appends: &[Append]) -> Result<(), AppendError> {
        let mut seen = vec![];
        for append in appends {
            let open = self.journals.get(&append.aggregate).map(|journal| &journal.requests);
            for id in &append.taken {
                let is_open = open.into_iter().flatten().any(|request| request.id == *id);
                if seen.contains(id) || !is_open {
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

    fn owner(&self, aggregate: &AggregateId) -> Option<Owner> {
        let living = self.journals.get(aggregate)?.owner.upgrade()?;
        Some(Owner::clone(&living))
    }

    fn find(&self, question: &Question, asking: &Weak<Owner>) -> Findings {
        let mut findings = Findings { pulse: self.changes, ..Findings::default() };
        let unowned = |awaited: &&AggregateId| self.owner(awaited).is_none();
        findings.unowned = question.awaits.iter().filter(unowned).cloned().collect();
        if question.since == Some(self.changes) {
            return findings;
        }
        for (aggregate, journal) in &self.journals {
            if journal.owner.ptr_eq(asking) && !journal.requests.is_empty() {
                let requests = Ok(journal.requests.clone());
                findings.requests.insert(aggregate.clone(), requests);
            }
        }
        for (aggregate, after) in &question.follows {
            let journal = self.journals.get(aggregate);
            let records = journal.map_or_else(Vec::new, |journal| journal.records(*after));
            if !records.is_empty() {
                findings.records.insert(aggregate.clone(), Ok(records));
            }
        }
        findings
    }

    fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }
}

impl Store for MemoryStore {
    fn submit(&self, appends: Vec<Append>, done: OnAppended) {
        // Not in one expression: `done` must not run under the lock.
        let result = self.contents().append(appends);
        done(result);
    }

    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError> {
        Ok(self.contents().journals.get(aggregate).map(MemoryJournal::head))
    }

    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError> {
        let contents = self.contents();
        let journal = contents.journals.get(aggregate);
        Ok(Box::new(journal.map_or_else(Vec::new, |journal| journal.records(after)).into_iter().map(Ok)))
    }

    fn list(&self, family: &str, prefix: &str) -> Result<Vec<ListedAggregate>, StoreError> {
        let contents = self.contents();
        let listed = contents.journals.iter().filter(|(aggregate, journal)| {
            aggregate.family() == family && aggregate.id().starts_with(prefix) && !journal.records.is_empty()
        });
        let listed = listed.map(|(aggregate, journal)| ListedAggregate {
            aggregate: aggregate.clone(),
            head: journal.head(),
        });
        Ok(listed.collect())
    }

    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError> {
        let mut contents = self.contents();
        let Some(journal) = contents.journals.get_mut(aggregate) else {
            return Ok(());
        };
        // The last record is never trimmed.
        let end = before.min(journal.head().version).0.saturating_sub(1);
        if let Some(more) = end.checked_sub(journal.trimmed.0).filter(|more| *more > 0) {
            let more = usize::try_from(more).unwrap_or(usize::MAX);
            journal.records.drain(..more.min(journal.records.len()));
            journal.trimmed = Version(end);
            contents.changed();
        }
        Ok(())
    }

    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError> {
        let mut contents = self.contents();
        if let Some(journal) = contents.journals.get(aggregate) {
            append::fenced(aggregate, epoch, journal.head())?;
            contents.journals.remove(aggregate);
            contents.changed();
        }
        Ok(())
    }

    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError> {
        let mut contents = self.contents();
        if let Some(owner) = contents.owner(aggregate) {
            return Err(ClaimError::OwnedBy { aggregate: aggregate.clone(), owner });
        }
        let epoch = contents.last_epoch.next();
        contents.last_epoch = epoch;
        contents.changed();
        let journal = contents.journals.entry(aggregate.clone()).or_default();
        journal.owner = Arc::downgrade(&self.owner);
        journal.epoch = epoch;
        Ok(Claim { aggregate: aggregate.clone(), epoch, version: journal.head().version })
    }

    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError> {
        Ok(self.contents().owner(aggregate))
    }

    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError> {
        let mut contents = self.contents();
        if let Some(journal) = contents.journals.get_mut(&claim.aggregate)
            && journal.epoch == claim.epoch
        {
            journal.owner = Weak::new();
            contents.changed();
        }
        Ok(())
    }

    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError> {
        let mut contents = self.contents();
        let id = RequestId(contents.last_request.saturating_add(1));
        let journal = contents.journals.get_mut(aggregate);
        let journal = journal.filter(|journal| !journal.records.is_empty());
        let journal = journal.ok_or_else(|| StoreError::NotFound { aggregate: aggregate.clone() })?;
        journal.requests.push(StoreRequest { id, bytes });
        contents.last_request = id.0;
        contents.changed();
        Ok(id)
    }

    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError> {
        let contents = self.contents();
        let journal = contents.journals.get(aggregate);
        Ok(journal.map_or_else(Vec::new, |journal| journal.requests.clone()))
    }

    fn ask(&self, question: Question, done: OnFindings) {
        let findings = self.contents().find(&question, &Arc::downgrade(&self.owner));
        done(Ok(findings));
    }

    fn save_snapshot(&self, aggregate: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError> {
        let mut contents = self.contents();
        let journal = contents.journals.get_mut(aggregate);
        let journal = journal.ok_or_else(|| StoreError::NotFound { aggregate: aggregate.clone() })?;
        let head = journal.head().version;
        if at > head {
            return Err(StoreError::AheadOfJournal { aggregate: aggregate.clone(), at, head });
        }
        if journal.snapshot.as_ref().is_none_or(|stored| stored.at <= at) {
            journal.snapshot = Some(Snapshot { at, bytes });
        }
        Ok(())
    }

    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<FoundSnapshot, StoreError> {
        let contents = self.contents();
        let journal = contents.journals.get(aggregate);
        Ok(FoundSnapshot { latest: journal.and_then(|journal| journal.snapshot.clone()), ignored: vec![] })
    }

    fn pulse(&self) -> Result<u64, StoreError> {
        Ok(self.contents().changes)
    }
}
