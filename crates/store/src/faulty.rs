//! A store handle that fails as the script of its [`Faults`] says.
//!
//! Otherwise it keeps the contract of the inner store. After a failed sync it refuses everything, like any
//! store, until it is dropped and opened again.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, FoundSnapshot, Head, ListedAggregate,
    OnAppended, OnFindings, Owner, Question, Records, RequestId, Store, StoreError, StoreRequest, Version,
};

type StalledAppends = VecDeque<(Vec<Append>, OnAppended)>;

pub struct FaultyStore {
    inner: Box<dyn Store>,
    faults: Faults,
    broken: OnceLock<StoreError>,
    stalled: Mutex<Option<StalledAppends>>,
    /// During an outage, how many questions remain unanswered.
    outage: Mutex<Option<u32>>,
}

impl FaultyStore {
    pub fn new(inner: Box<dyn Store>, faults: Faults) -> Self {
        Self { inner, faults, broken: OnceLock::new(), stalled: Mutex::default(), outage: Mutex::default() }
    }

    /// Ends a stall: the waiting appends are processed in order, up to the next stall.
    pub fn resume(&self) {
        let mut waiting = self.stalled().take().unwrap_or_default();
        // The first one has had its fault, the stall.
        if let Some((appends, done)) = waiting.pop_front() {
            self.submit_without_fault(appends, done);
        }
        for (appends, done) in waiting {
            self.submit(appends, done);
        }
    }

    pub fn waiting(&self) -> usize {
        self.stalled().as_ref().map_or(0, VecDeque::len)
    }

    fn stalled(&self) -> MutexGuard<'_, Option<StalledAppends>> {
        self.stalled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn usable(&self) -> Result<&dyn Store, StoreError> {
        match self.broken.get() {
            Some(error) => Err(error.clone()),
            None if self.outage().is_some() => Err(unreachable()),
            None => Ok(&*self.inner),
        }
    }

    /// Like [`Self::usable`], for a question, which may end an outage.
    fn reached(&self) -> Result<&dyn Store, StoreError> {
        let mut outage = self.outage();
        *outage = match *outage {
            Some(left @ 1..) => {
                *outage = Some(left.saturating_sub(1));
                return Err(unreachable());
            }
            Some(0) | None => None,
        };
        drop(outage);
        self.usable()
    }

    fn outage(&self) -> MutexGuard<'_, Option<u32>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit_without_fault(&self, appends: Vec<Append>, done: OnAppended) {
        match self.usable() {
            Ok(inner) => inner.submit(appends, done),
            Err(error) => done(Err(error.into())),
        }
    }

    fn fail_sync(&self) -> AppendError {
        let cause: Box<dyn Error + Send + Sync> = "the sync failed (injected fault)".into();
        let error = StoreError::MustReopen { source: Arc::from(cause) };
        AppendError::Store(self.broken.get_or_init(|| error).clone())
    }

    /// The answer of a disk that lies: the versions at which the appends would have been stored.
    fn lose(&self, appends: &[Append]) -> Result<Vec<Version>, AppendError> {
        let mut planned: BTreeMap<&AggregateId, Version> = BTreeMap::new();
        let mut reached = vec![];
        for append in appends {
            let found = match (append.guard, planned.get(&append.aggregate)) {
                (Some(guard), _) => guard.version,
                (None, Some(earlier)) => *earlier,
                (None, None) => self.inner.head(&append.aggregate)?.unwrap_or_default().version,
            };
            let version = append.reaches(found);
            planned.insert(&append.aggregate, version);
            reached.push(version);
        }
        Ok(reached)
    }

    fn tear(&self, mut appends: Vec<Append>, whole: usize) -> Result<Vec<Version>, AppendError> {
        if appends.is_empty() {
            return Err(self.fail_sync());
        }
        let mut first = appends.swap_remove(0);
        first.records.truncate(whole);
        first.taken.clear();
        let aggregate = first.aggregate.clone();
        let whole = self.inner.append(vec![first])?.first().copied().unwrap_or_default();
        self.faults.tear(aggregate, whole.next());
        Err(self.fail_sync())
    }
}

fn unreachable() -> StoreError {
    let cause: Box<dyn Error + Send + Sync> = "outage (injected fault)".into();
    StoreError::Unreachable { store: "faulty".to_owned(), source: Arc::from(cause) }
}

impl Store for FaultyStore {
    fn submit(&self, appends: Vec<Append>, done: OnAppended) {
        let mut stalled = self.stalled();
        if let Some(waiting) = &mut *stalled {
            waiting.push_back((appends, done));
            return;
        }
        let fault = self.faults.next_append();
        if matches!(fault, Some(Fault::Stall)) {
            *stalled = Some(VecDeque::from([(appends, done)]));
            return;
        }
        drop(stalled);
        let (Some(fault), Ok(inner)) = (fault, self.usable()) else {
            return self.submit_without_fault(appends, done);
        };
        done(match fault {
            Fault::Refuse(error) => Err(error.into()),
            Fault::Lose | Fault::Stall => self.lose(&appends),
            Fault::SyncFails { stored: false } => Err(self.fail_sync()),
            Fault::SyncFails { stored: true } => match inner.append(appends) {
                Ok(_) => Err(self.fail_sync()),
                // A refused append is not synced.
                refused => refused,
            },
            Fault::Tear { whole } => self.tear(appends, whole),
            Fault::Outage { stored, questions } => {
                if stored {
                    // A refused append is submitted again after the outage, and refused again.
                    drop(inner.append(appends));
                }
                *self.outage() = Some(questions);
                Err(unreachable().into())
            }
        });
    }

    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError> {
        self.usable()?.head(aggregate)
    }

    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError> {
        let inner = self.usable()?;
        if let Some(error) = self.faults.next_read() {
            return Err(error);
        }
        let records = inner.read(aggregate, after)?;
        let Some(version) = self.faults.torn(aggregate).filter(|torn| *torn > after) else {
            return Ok(records);
        };
        let before = records.take_while(move |record| !matches!(record, Ok((found, _)) if *found >= version));
        let damaged = StoreError::Damaged {
            aggregate: aggregate.clone(),
            version,
            what: "it is torn (injected fault)",
        };
        Ok(Box::new(before.chain([Err(damaged)])))
    }

    fn list(&self, family: &str, prefix: &str) -> Result<Vec<ListedAggregate>, StoreError> {
        self.usable()?.list(family, prefix)
    }

    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError> {
        self.usable()?.trim(aggregate, before)
    }

    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError> {
        self.usable()?.remove(aggregate, epoch)?;
        self.faults.mend(aggregate);
        Ok(())
    }

    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError> {
        self.usable()?.claim(aggregate)
    }

    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError> {
        self.usable()?.owner(aggregate)
    }

    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError> {
        match self.broken.get() {
            Some(error) => Err(error.clone()),
            // A release during an outage takes effect by the end of the outage.
            None => self.inner.unclaim(claim),
        }
    }

    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError> {
        self.usable()?.request(aggregate, bytes)
    }

    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError> {
        self.usable()?.requests(aggregate)
    }

    fn ask(&self, question: Question, done: OnFindings) {
        self.faults.note_question();
        match self.reached() {
            Ok(inner) => inner.ask(question, done),
            Err(error) => done(Err(error)),
        }
    }

    fn save_snapshot(&self, aggregate: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.usable()?.save_snapshot(aggregate, at, bytes)
    }

    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<FoundSnapshot, StoreError> {
        self.usable()?.latest_snapshot(aggregate)
    }

    fn compact(&self) -> Result<[u64; 2], StoreError> {
        self.usable()?.compact()
    }

    fn pulse(&self) -> Result<u64, StoreError> {
        self.usable()?.pulse()
    }
}

/// What happens to an append.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The append is refused with this error and not stored. The store stays usable.
    Refuse(StoreError),
    /// The sync fails and the store must be reopened. The append is then present if `stored`.
    SyncFails { stored: bool },
    /// The store becomes unreachable, and the caller does not learn whether the append was `stored`. That
    /// many `questions` are not answered; the next one ends the outage.
    Outage { stored: bool, questions: u32 },
    /// The append is acknowledged but not stored, as by a disk that lies.
    Lose,
    /// `whole` records of the first aggregate are stored, the next one is damaged, and the sync fails.
    Tear { whole: usize },
    /// This append and all later ones wait until [`FaultyStore::resume`](FaultyStore::resume).
    Stall,
}

/// The script and the damage so far. Like a disk, it is shared by handles that are opened one after the
/// other.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<FaultScript>>);

#[derive(Debug, Default)]
struct FaultScript {
    appends: BTreeMap<u64, Fault>,
    reads: BTreeMap<u64, StoreError>,
    seen_appends: u64,
    seen_reads: u64,
    questions: u64,
    torn: BTreeMap<AggregateId, Version>,
}

impl Faults {
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a fault at the n-th append, counted from 1 over all handles.
    pub fn at_append(self, n: u64, fault: Fault) -> Self {
        self.script().appends.insert(n, fault);
        self
    }

    /// Refuses the n-th `read`, counted from 1 over all handles.
    pub fn at_read(self, n: u64, error: StoreError) -> Self {
        self.script().reads.insert(n, error);
        self
    }

    /// The number of appends so far, over all handles.
    pub fn appends(&self) -> u64 {
        self.script().seen_appends
    }

    /// The number of questions so far, over all handles.
    pub fn questions(&self) -> u64 {
        self.script().questions
    }

    fn note_question(&self) {
        let mut script = self.script();
        script.questions = script.questions.saturating_add(1);
    }

    fn next_append(&self) -> Option<Fault> {
        let mut script = self.script();
        script.seen_appends = script.seen_appends.saturating_add(1);
        let n = script.seen_appends;
        script.appends.remove(&n)
    }

    fn next_read(&self) -> Option<StoreError> {
        let mut script = self.script();
        script.seen_reads = script.seen_reads.saturating_add(1);
        let n = script.seen_reads;
        script.reads.remove(&n)
    }

    fn tear(&self, aggregate: AggregateId, at: Version) {
        self.script().torn.insert(aggregate, at);
    }

    fn torn(&self, aggregate: &AggregateId) -> Option<Version> {
        self.script().torn.get(aggregate).copied()
    }

    fn mend(&self, aggregate: &AggregateId) {
        self.script().torn.remove(aggregate);
    }

    fn script(&self) -> MutexGuard<'_, FaultScript> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
