//! The store of a simulated process: the journals of all processes, reached through a disk that takes
//! time and fails.
//!
//! What is handed over is written in groups, and told when it is on the disk. A process that dies
//! meanwhile has written the whole group or nothing of it: that a group is whole or not there is what
//! the store's checksums are for, and what `powercut` shows of the real one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use undaunted_store::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, FoundSnapshot, Head, Listed, MemoryStore,
    OnAppended, OnFindings, Owner, Question, Records, RequestId, Store, StoreError, StoreRequest, Version,
};

use super::gates;
use super::outside::{Happening, Outside, Shared, Touch, Write, look};

/// A handle of one process.
pub(super) struct SimStore {
    shared: Shared,
    process: usize,
    /// Goes with the process.
    inner: Mutex<Option<Arc<MemoryStore>>>,
}

impl SimStore {
    pub(super) fn new(shared: Shared, process: usize, inner: MemoryStore) -> Self {
        Self { shared, process, inner: Mutex::new(Some(Arc::new(inner))) }
    }

    /// The process has died: whoever looks finds that nobody owns what it owned.
    pub(super) fn die(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.take();
    }

    fn inner(&self) -> Result<Arc<MemoryStore>, StoreError> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = inner.clone().ok_or_else(full)?;
        let outside = look(&self.shared);
        let life = outside.lives.get(self.process);
        match life {
            Some(life) if life.is_broken => Err(full()),
            Some(life) if life.outage.is_some() => Err(unreachable()),
            _ => Ok(inner),
        }
    }

    /// The store, to be read; that may be when it cannot be reached any more.
    fn reading(&self) -> Result<Arc<MemoryStore>, StoreError> {
        let inner = self.inner()?;
        let mut outside = look(&self.shared);
        let outage = outside.harm.outage;
        if outage > 0 && outside.die.falls(outage, 100_000) {
            outside.begin_outage(self.process);
            return Err(unreachable());
        }
        Ok(inner)
    }

    /// A question reaches the store, unless the process has died or there is an outage.
    pub(super) fn answer(&self, question: Question, done: OnFindings) {
        let mut outside = look(&self.shared);
        let now = outside.now;
        let Some(life) = outside.lives.get_mut(self.process) else {
            return;
        };
        if life.is_dead {
            return;
        }
        life.questions = life.questions.saturating_sub(1);
        if life.outage.is_some_and(|until| until <= now) {
            life.outage = None;
            outside.tell(|| format!("engine {} reaches the store again", self.process));
        }
        drop(outside);
        match self.inner() {
            Ok(inner) => inner.ask(question, done),
            Err(error) => done(Err(error)),
        }
        look(&self.shared).wake(self.process);
    }

    /// Everything that was handed over before is done first.
    fn flush(&self) {
        loop {
            let mut outside = look(&self.shared);
            let Some(life) = outside.lives.get_mut(self.process) else {
                return;
            };
            if life.writing.is_empty() {
                let all = life.waiting.drain(..);
                life.writing = all.collect();
            }
            if life.writing.is_empty() {
                return;
            }
            drop(outside);
            self.written();
        }
    }

    /// What was being written is on the disk, or cannot be.
    pub(super) fn written(&self) {
        let inner = self.inner();
        let mut outside = look(&self.shared);
        let Some(life) = outside.lives.get_mut(self.process) else {
            return;
        };
        let inner = match inner {
            Ok(inner) => inner,
            Err(error) => {
                // Nothing is written any more, and whoever waits hears it.
                let group = life.writing.drain(..).chain(life.waiting.drain(..));
                let group: Vec<Write> = group.collect();
                self.refuse(&mut outside, group, &error);
                return;
            }
        };
        let group = std::mem::take(&mut life.writing);
        let fate = Fate::drawn(&mut outside);
        for write in group {
            match write {
                Write::Append(appends, done) => {
                    if let Fate::Outage(_) = fate {
                        outside.note_lost(self.process, &appends);
                    }
                    let result = outside.put(&inner, appends, fate);
                    // It only hands the news on.
                    done(result);
                    outside.wake(self.process);
                }
                Write::Release(claim) => drop(inner.unclaim(&claim)),
            }
        }
        if let (Fate::Unsure(_), Some(life)) = (fate, outside.lives.get_mut(self.process)) {
            life.is_broken = true;
        }
        if let Fate::Outage(_) = fate {
            outside.begin_outage(self.process);
            let life = outside.lives.get_mut(self.process);
            let waiting = life.map(|life| life.waiting.drain(..).collect());
            self.refuse(&mut outside, waiting.unwrap_or_default(), &unreachable());
        }
        outside.write_on(self.process);
    }

    /// Nothing of this is written, and whoever waits for it hears why. What is given up is given up.
    fn refuse(&self, outside: &mut Outside, writes: Vec<Write>, why: &StoreError) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for write in writes {
            match (write, &*inner) {
                (Write::Append(appends, done), _) => {
                    outside.note_lost(self.process, &appends);
                    done(Err(why.clone().into()));
                }
                (Write::Release(claim), Some(inner)) => drop(inner.unclaim(&claim)),
                (Write::Release(_), None) => {}
            }
        }
        outside.wake(self.process);
    }

    /// The process dies while something is being written: all of it is there, or nothing.
    pub(super) fn die_writing(&self) {
        let inner = self.inner();
        let mut outside = look(&self.shared);
        let whole = outside.die.falls(1, 2);
        let Some(life) = outside.lives.get_mut(self.process) else {
            return;
        };
        let group = std::mem::take(&mut life.writing);
        life.waiting.clear();
        if let (true, Ok(inner)) = (whole, inner) {
            for write in group {
                if let Write::Append(appends, _) = write {
                    drop(outside.put(&inner, appends, Fate::Good));
                }
            }
        }
    }

    /// Does something at once that may be refused, or be the last thing done.
    fn now<T, E: From<StoreError>>(&self, what: impl FnOnce(&MemoryStore) -> Result<T, E>) -> Result<T, E> {
        self.inner()?;
        self.flush();
        let inner = self.inner()?;
        let mut outside = look(&self.shared);
        if outside.touch(self.process) == Touch::Dead {
            return Err(full().into());
        }
        match Fate::drawn(&mut outside) {
            Fate::Refused => Err(full().into()),
            Fate::Outage(_) => {
                outside.begin_outage(self.process);
                Err(unreachable().into())
            }
            Fate::Good | Fate::Unsure(_) => what(&inner),
        }
    }
}

/// What becomes of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Good,
    Refused,
    /// Nobody knows; this is how it is.
    Unsure(bool),
    /// The store cannot be reached any more; this is how it is.
    Outage(bool),
}

impl Fate {
    fn drawn(outside: &mut Outside) -> Self {
        let (refused, unsure) = (outside.harm.refused, outside.harm.unsure);
        if refused > 0 && outside.die.falls(refused, 100_000) {
            outside.tell(|| "the disk is full".to_owned());
            return Self::Refused;
        }
        if unsure > 0 && outside.die.falls(unsure, 100_000) {
            let is_there = outside.die.falls(1, 2);
            outside.tell(|| format!("a sync fails; what was written is there: {is_there}"));
            return Self::Unsure(is_there);
        }
        let outage = outside.harm.outage;
        if outage > 0 && outside.die.falls(outage, 100_000) {
            let is_there = outside.die.falls(1, 2);
            outside.tell(|| format!("an answer is lost; what was written is there: {is_there}"));
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

impl Outside {
    /// A process cannot reach its store for a while.
    fn begin_outage(&mut self, process: usize) {
        let lasts = Duration::from_millis(self.die.between(1, 20_000));
        let until = self.now.saturating_add(lasts);
        self.tell(|| format!("engine {process} cannot reach the store for {lasts:?}"));
        if let Some(life) = self.lives.get_mut(process) {
            life.outage = Some(until);
        }
    }

    /// The answer to an append is lost; it may be handed over again.
    fn note_lost(&mut self, process: usize, appends: &[Append]) {
        if let Some(life) = self.lives.get_mut(process) {
            life.lost.extend(continued(appends));
        }
    }

    /// A process hands records over: it must not start what it knows to be held.
    fn look_at_handed_over(&mut self, process: usize, appends: &[Append]) {
        let Some(life) = self.lives.get_mut(process) else {
            return;
        };
        // What is handed over again was decided before the outage.
        if continued(appends).is_some_and(|of| life.lost.remove(&of)) {
            return;
        }
        let jobs = &self.witness.jobs;
        // What is handed over again and stood before is on the disk, and counts once.
        let stands = |write: &Write| match write {
            Write::Append(appends, _) => continued(appends).is_some_and(|(of, version)| {
                let records = jobs.get(of.id()).map(|seen| seen.records.len());
                records.is_some_and(|records| Version::EMPTY.after(records) > version)
            }),
            Write::Release(_) => false,
        };
        let own = life.writing.iter().chain(&life.waiting);
        let own = own.filter(|write| !stands(write));
        let mut broken = self.witness.gates.handed_over(appends, own, self.now);
        broken.extend(gates::probed(appends, &life.claims));
        for broken in broken {
            self.tell(|| format!("VIOLATION {broken}"));
            self.witness.violation(broken);
        }
    }

    /// Writes records, and looks at what they say.
    fn put(
        &mut self,
        inner: &MemoryStore,
        appends: Vec<Append>,
        fate: Fate,
    ) -> Result<Vec<Version>, AppendError> {
        match fate {
            Fate::Refused | Fate::Unsure(false) => return Err(full().into()),
            Fate::Outage(false) => return Err(unreachable().into()),
            Fate::Good | Fate::Unsure(true) | Fate::Outage(true) => {}
        }
        let said = appends.clone();
        let reached = match inner.append(appends) {
            Ok(reached) => reached,
            Err(why) => {
                self.tell(|| format!("records are refused: {why}"));
                return Err(why);
            }
        };
        let now = self.now;
        let witness = &mut self.witness;
        let before = witness.found.len();
        let told = witness.written(&said, now);
        for told in told {
            self.tell(|| told);
        }
        let witness = &self.witness;
        let broken: Vec<String> = witness.found.iter().skip(before).cloned().collect();
        for broken in broken {
            self.tell(|| format!("VIOLATION {broken}"));
        }
        match fate {
            Fate::Unsure(_) => Err(full().into()),
            Fate::Outage(_) => Err(unreachable().into()),
            Fate::Good | Fate::Refused => Ok(reached),
        }
    }

    /// Begins to write what waits, if nothing is being written.
    fn write_on(&mut self, process: usize) {
        let Some(life) = self.lives.get_mut(process) else {
            return;
        };
        if !life.writing.is_empty() || life.waiting.is_empty() {
            return;
        }
        life.writing = life.waiting.drain(..).collect();
        let most = u64::try_from(self.harm.sync.as_micros()).unwrap_or_default();
        let mut takes = Duration::from_micros(self.die.between(0, most));
        let stall = self.harm.stall;
        if stall > 0 && self.die.falls(stall, 100_000) {
            takes = Duration::from_millis(self.die.between(500, 30_000));
            self.tell(|| format!("the disk stands still for {takes:?}"));
        }
        self.after(takes, Happening::Written { process });
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
            look(&self.shared).note_lost(self.process, &appends);
            return done(Err(error.into()));
        }
        let mut outside = look(&self.shared);
        if outside.touch(self.process) == Touch::Dead {
            return;
        }
        outside.look_at_handed_over(self.process, &appends);
        if let Some(life) = outside.lives.get_mut(self.process) {
            life.waiting.push_back(Write::Append(appends, done));
        }
        outside.write_on(self.process);
    }

    fn append(&self, appends: Vec<Append>) -> Result<Vec<Version>, AppendError> {
        self.inner()?;
        self.flush();
        let inner = self.inner()?;
        let mut outside = look(&self.shared);
        if outside.touch(self.process) == Touch::Dead {
            return Err(full().into());
        }
        let fate = Fate::drawn(&mut outside);
        if let Fate::Outage(_) = fate {
            outside.begin_outage(self.process);
        }
        outside.put(&inner, appends, fate)
    }

    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError> {
        self.inner()?.head(aggregate)
    }

    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError> {
        let records: Vec<_> = self.reading()?.read(aggregate, after)?.collect();
        Ok(Box::new(records.into_iter()))
    }

    fn list(&self, family: &str, prefix: &str) -> Result<Vec<Listed>, StoreError> {
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
        if let Some(life) = look(&self.shared).lives.get_mut(self.process) {
            life.claims.insert(aggregate.clone());
        }
        Ok(claim)
    }

    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError> {
        self.inner()?.owner(aggregate)
    }

    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError> {
        self.now(|inner| inner.unclaim(claim))
    }

    fn unclaim_in_background(&self, claim: &Claim) {
        let mut outside = look(&self.shared);
        if let Some(life) = outside.lives.get_mut(self.process) {
            life.claims.remove(&claim.aggregate);
            life.waiting.push_back(Write::Release(claim.clone()));
        }
        outside.write_on(self.process);
    }

    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError> {
        self.now(|inner| inner.request(aggregate, bytes))
    }

    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError> {
        self.reading()?.requests(aggregate)
    }

    fn ask(&self, question: Question, done: OnFindings) {
        let mut outside = look(&self.shared);
        let (process, takes) = (self.process, outside.harm.word);
        let asked = Happening::Asked { process, question, done };
        outside.after(takes, asked);
        if let Some(life) = outside.lives.get_mut(process) {
            life.questions = life.questions.saturating_add(1);
        }
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
