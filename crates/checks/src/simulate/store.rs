//! The store of a simulated process: a shared store in memory behind a disk that is slow and fails.
//!
//! Appends are written in groups and acknowledged when they are on the disk. A process that dies meanwhile
//! has written the whole group or nothing of it: the real store's checksums ensure that, as `powercut` shows.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use undaunted_store::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, FoundSnapshot, Head, ListedAggregate,
    MemoryStore, OnAppended, OnFindings, Owner, Question, Records, RequestId, Store, StoreError,
    StoreRequest, Version,
};

use super::breaker_oracle;
use super::world::{Liveness, PendingWrite, SharedWorld, SimEvent, SimWorld, lock};

/// The handle of one process.
pub(super) struct SimStore {
    shared: SharedWorld,
    process: usize,
    /// `None` once the process has died.
    inner: Mutex<Option<Arc<MemoryStore>>>,
}

impl SimStore {
    pub(super) fn new(shared: SharedWorld, process: usize, inner: MemoryStore) -> Self {
        Self { shared, process, inner: Mutex::new(Some(Arc::new(inner))) }
    }

    /// The process has died, and its claims end.
    pub(super) fn lose_store(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.take();
    }

    fn inner(&self) -> Result<Arc<MemoryStore>, StoreError> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = inner.clone().ok_or_else(full)?;
        let world = lock(&self.shared);
        let state = world.processes.get(self.process);
        match state {
            Some(state) if state.is_broken => Err(full()),
            Some(state) if state.outage.is_some() => Err(unreachable()),
            _ => Ok(inner),
        }
    }

    /// The store for a read, which may begin an outage.
    fn reading(&self) -> Result<Arc<MemoryStore>, StoreError> {
        let inner = self.inner()?;
        let mut world = lock(&self.shared);
        let outage = world.fault_plan.outage;
        if outage > 0 && world.random.chance(outage, 100_000) {
            world.begin_outage(self.process);
            return Err(unreachable());
        }
        Ok(inner)
    }

    /// A query reaches the store, unless the process has died or the store is unreachable.
    pub(super) fn answer(&self, question: Question, done: OnFindings) {
        let mut world = lock(&self.shared);
        let now = world.now;
        let state = &mut world.processes[self.process];
        if state.is_dead {
            return;
        }
        state.questions = state.questions.saturating_sub(1);
        if state.outage.is_some_and(|until| until <= now) {
            state.outage = None;
            world.log(|| format!("engine {} reaches the store again", self.process));
        }
        drop(world);
        match self.inner() {
            Ok(inner) => inner.ask(question, done),
            Err(error) => done(Err(error)),
        }
        lock(&self.shared).wake(self.process);
    }

    /// Writes everything that was submitted before.
    fn flush(&self) {
        loop {
            let mut world = lock(&self.shared);
            let state = &mut world.processes[self.process];
            if state.writing.is_empty() {
                let all = state.waiting.drain(..);
                state.writing = all.collect();
            }
            if state.writing.is_empty() {
                return;
            }
            drop(world);
            self.written();
        }
    }

    /// A group of writes reaches the disk, or fails.
    pub(super) fn written(&self) {
        let inner = self.inner();
        let mut world = lock(&self.shared);
        let state = &mut world.processes[self.process];
        let inner = match inner {
            Ok(inner) => inner,
            Err(error) => {
                // Nothing is written any more, and every submitter gets the error.
                let group = state.writing.drain(..).chain(state.waiting.drain(..));
                let group: Vec<PendingWrite> = group.collect();
                self.refuse(&mut world, group, &error);
                return;
            }
        };
        let group = std::mem::take(&mut state.writing);
        let fate = WriteFate::drawn(&mut world);
        for write in group {
            match write {
                PendingWrite::Append(appends, done) => {
                    if let WriteFate::Outage(_) = fate {
                        world.note_lost(self.process, &appends);
                    }
                    let result = world.write(&inner, appends, fate);
                    // The callback only sends a message.
                    done(result);
                    world.wake(self.process);
                }
                PendingWrite::Release(claim) => drop(inner.unclaim(&claim)),
            }
        }
        if let (WriteFate::Unsure(_), Some(state)) = (fate, world.processes.get_mut(self.process)) {
            state.is_broken = true;
        }
        if let WriteFate::Outage(_) = fate {
            world.begin_outage(self.process);
            let state = world.processes.get_mut(self.process);
            let waiting = state.map(|state| state.waiting.drain(..).collect());
            self.refuse(&mut world, waiting.unwrap_or_default(), &unreachable());
        }
        world.begin_write(self.process);
    }

    /// Fails these writes. Releases take effect all the same.
    fn refuse(&self, world: &mut SimWorld, writes: Vec<PendingWrite>, why: &StoreError) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for write in writes {
            match (write, &*inner) {
                (PendingWrite::Append(appends, done), _) => {
                    world.note_lost(self.process, &appends);
                    done(Err(why.clone().into()));
                }
                (PendingWrite::Release(claim), Some(inner)) => drop(inner.unclaim(&claim)),
                (PendingWrite::Release(_), None) => {}
            }
        }
        world.wake(self.process);
    }

    /// The process dies during a write: all of the group is there, or nothing.
    pub(super) fn crash_while_writing(&self) {
        let inner = self.inner();
        let mut world = lock(&self.shared);
        let is_whole = world.random.chance(1, 2);
        let state = &mut world.processes[self.process];
        let group = std::mem::take(&mut state.writing);
        state.waiting.clear();
        if let (true, Ok(inner)) = (is_whole, inner) {
            for write in group {
                if let PendingWrite::Append(appends, _) = write {
                    drop(world.write(&inner, appends, WriteFate::Good));
                }
            }
        }
    }

    /// Acts on the store at once, which may fail or be the last action of the process.
    fn now<T, E: From<StoreError>>(&self, what: impl FnOnce(&MemoryStore) -> Result<T, E>) -> Result<T, E> {
        self.inner()?;
        self.flush();
        let inner = self.inner()?;
        let mut world = lock(&self.shared);
        if world.touch(self.process) == Liveness::Dead {
            return Err(full().into());
        }
        match WriteFate::drawn(&mut world) {
            WriteFate::Refused => Err(full().into()),
            WriteFate::Outage(_) => {
                world.begin_outage(self.process);
                Err(unreachable().into())
            }
            WriteFate::Good | WriteFate::Unsure(_) => what(&inner),
        }
    }
}

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteFate {
    Good,
    Refused,
    /// The write fails and has happened, or not.
    Unsure(bool),
    /// The store becomes unreachable and the write has happened, or not.
    Outage(bool),
}

impl WriteFate {
    fn drawn(world: &mut SimWorld) -> Self {
        let (refused, unsure) = (world.fault_plan.refused, world.fault_plan.write_unknown);
        if refused > 0 && world.random.chance(refused, 100_000) {
            world.log(|| "the disk is full".to_owned());
            return Self::Refused;
        }
        if unsure > 0 && world.random.chance(unsure, 100_000) {
            let is_there = world.random.chance(1, 2);
            world.log(|| format!("a sync fails; what was written is there: {is_there}"));
            return Self::Unsure(is_there);
        }
        let outage = world.fault_plan.outage;
        if outage > 0 && world.random.chance(outage, 100_000) {
            let is_there = world.random.chance(1, 2);
            world.log(|| format!("an answer is lost; what was written is there: {is_there}"));
            return Self::Outage(is_there);
        }
        Self::Good
    }
}

fn full() -> StoreError {
    StoreError::DiskFull { path: PathBuf::from("simulated") }
}

fn unreachable() -> StoreError {
    StoreError::Unreachable {
        store: "simulated".to_owned(),
        source: Arc::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
    }
}

impl SimWorld {
    fn begin_outage(&mut self, process: usize) {
        let lasts = Duration::from_millis(self.random.between(1, 20_000));
        let until = self.now.saturating_add(lasts);
        self.log(|| format!("engine {process} cannot reach the store for {lasts:?}"));
        self.processes[process].outage = Some(until);
    }

    /// An append without an answer may be submitted again.
    fn note_lost(&mut self, process: usize, appends: &[Append]) {
        self.processes[process].lost.extend(continued(appends));
    }

    /// Checks that a process does not start what it knows to be held.
    fn check_submitted(&mut self, process: usize, appends: &[Append]) {
        let state = &mut self.processes[process];
        // An append that is submitted again was decided before the outage.
        if continued(appends).is_some_and(|of| state.lost.remove(&of)) {
            return;
        }
        let jobs = &self.oracle.jobs;
        // An append that is submitted again and was written before is on the disk, and counts once.
        let frozen_since = |write: &PendingWrite| match write {
            PendingWrite::Append(appends, _) => continued(appends).is_some_and(|(of, version)| {
                let records = jobs.get(of.id()).map(|seen| seen.records.len());
                records.is_some_and(|records| Version::EMPTY.after(records) > version)
            }),
            PendingWrite::Release(_) => false,
        };
        let own = state.writing.iter().chain(&state.waiting);
        let own = own.filter(|write| !frozen_since(write));
        let mut violations = self.oracle.breakers.check_submitted(appends, own, self.now);
        violations.extend(breaker_oracle::probed(appends, &state.claims));
        for violation in violations {
            self.log(|| format!("VIOLATION {violation}"));
            self.oracle.violation(violation);
        }
    }

    /// Writes records and checks them.
    fn write(
        &mut self,
        inner: &MemoryStore,
        appends: Vec<Append>,
        fate: WriteFate,
    ) -> Result<Vec<Version>, AppendError> {
        match fate {
            WriteFate::Refused | WriteFate::Unsure(false) => return Err(full().into()),
            WriteFate::Outage(false) => return Err(unreachable().into()),
            WriteFate::Good | WriteFate::Unsure(true) | WriteFate::Outage(true) => {}
        }
        let appended = appends.clone();
        let reached = match inner.append(appends) {
            Ok(reached) => reached,
            Err(why) => {
                self.log(|| format!("records are refused: {why}"));
                return Err(why);
            }
        };
        let now = self.now;
        let oracle = &mut self.oracle;
        let before = oracle.violations.len();
        let told = oracle.written(&appended, now);
        for told in told {
            self.log(|| told);
        }
        let oracle = &self.oracle;
        let violations: Vec<String> = oracle.violations.iter().skip(before).cloned().collect();
        for violation in violations {
            self.log(|| format!("VIOLATION {violation}"));
        }
        match fate {
            WriteFate::Unsure(_) => Err(full().into()),
            WriteFate::Outage(_) => Err(unreachable().into()),
            WriteFate::Good | WriteFate::Refused => Ok(reached),
        }
    }

    /// Begins to write the waiting appends, unless a write is under way.
    fn begin_write(&mut self, process: usize) {
        let state = &mut self.processes[process];
        if !state.writing.is_empty() || state.waiting.is_empty() {
            return;
        }
        state.writing = state.waiting.drain(..).collect();
        let most = u64::try_from(self.fault_plan.max_write_time.as_micros()).unwrap_or_default();
        let mut takes = Duration::from_micros(self.random.between(0, most));
        let stall = self.fault_plan.stall;
        if stall > 0 && self.random.chance(stall, 100_000) {
            takes = Duration::from_millis(self.random.between(500, 30_000));
            self.log(|| format!("the disk hangs for {takes:?}"));
        }
        self.after(takes, SimEvent::Written { process });
    }
}

/// The first journal of an append, and the version it continues.
fn continued(appends: &[Append]) -> Option<(AggregateId, Version)> {
    let first = appends.first()?;
    Some((first.aggregate.clone(), first.guard?.version))
}

impl Store for SimStore {
    fn submit(&self, appends: Vec<Append>, done: OnAppended) {
        if let Err(error) = self.inner() {
            lock(&self.shared).note_lost(self.process, &appends);
            return done(Err(error.into()));
        }
        let mut world = lock(&self.shared);
        if world.touch(self.process) == Liveness::Dead {
            return;
        }
        world.check_submitted(self.process, &appends);
        world.processes[self.process].waiting.push_back(PendingWrite::Append(appends, done));
        world.begin_write(self.process);
    }

    fn append(&self, appends: Vec<Append>) -> Result<Vec<Version>, AppendError> {
        self.inner()?;
        self.flush();
        let inner = self.inner()?;
        let mut world = lock(&self.shared);
        if world.touch(self.process) == Liveness::Dead {
            return Err(full().into());
        }
        let fate = WriteFate::drawn(&mut world);
        if let WriteFate::Outage(_) = fate {
            world.begin_outage(self.process);
        }
        world.write(&inner, appends, fate)
    }

    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError> {
        self.inner()?.head(aggregate)
    }

    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError> {
        let records: Vec<_> = self.reading()?.read(aggregate, after)?.collect();
        Ok(Box::new(records.into_iter()))
    }

    fn list(&self, family: &str, prefix: &str) -> Result<Vec<ListedAggregate>, StoreError> {
        self.inner()?.list(family, prefix)
    }

    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError> {
        self.now(|inner| inner.trim(aggregate, before))
    }

    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError> {
        self.now(|inner| inner.remove(aggregate, epoch))
    }

    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError> {
        let claim = self.now(|inner| inner.claim(aggregate))?;
        lock(&self.shared).processes[self.process].claims.insert(aggregate.clone());
        Ok(claim)
    }

    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError> {
        self.inner()?.owner(aggregate)
    }

    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError> {
        self.now(|inner| inner.unclaim(claim))
    }

    fn unclaim_in_background(&self, claim: &Claim) {
        let mut world = lock(&self.shared);
        if let Some(state) = world.processes.get_mut(self.process) {
            state.claims.remove(&claim.aggregate);
            state.waiting.push_back(PendingWrite::Release(claim.clone()));
        }
        world.begin_write(self.process);
    }

    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError> {
        self.now(|inner| inner.request(aggregate, bytes))
    }

    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError> {
        self.reading()?.requests(aggregate)
    }

    fn ask(&self, question: Question, done: OnFindings) {
        let mut world = lock(&self.shared);
        let (process, takes) = (self.process, world.fault_plan.message_delay);
        let asked = SimEvent::Queried { process, question, done };
        world.after(takes, asked);
        world.processes[process].questions += 1;
    }

    fn save_snapshot(&self, aggregate: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.inner()?.save_snapshot(aggregate, at, bytes)
    }

    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<FoundSnapshot, StoreError> {
        self.inner()?.latest_snapshot(aggregate)
    }

    fn pulse(&self) -> Result<u64, StoreError> {
        self.inner()?.pulse()
    }
}
