//! The handle on a store in a folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use rusqlite::Connection;

use super::compaction::{self, Compaction};
use super::connection::ConnectionMode;
use super::questions::{QuestionThread, Responder, decode_requests};
use super::writer::{ClosureTask, Durability, WriteTask, Writer};
use super::{
    Broken, ChangeResult, JournalHead, JournalReader, OwnerFile, ReadConnections, StoreFolder,
    StoreTransaction, checkpoint, classify, heads, owners, schema, snapshots,
};
use crate::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, FoundSnapshot, Head, ListedAggregate,
    OnAppended, OnFindings, Owner, Question, Records, RequestId, Store, StoreError, StoreRequest, UnderClaim,
    Version,
};

#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// How long to wait for locks of other processes.
    pub patience: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { patience: Duration::from_secs(10) }
    }
}

/// A handle on a store in a folder. Any number of processes may have handles on the same store.
pub struct SqliteStore {
    // In drop order: the writer finishes its tasks before `owner_file` is removed.
    /// Missing if the store was opened for reading.
    writer: Option<Writer>,
    readers: Arc<ReadConnections>,
    /// Started by the first question: a short-lived process asks none.
    questions: Mutex<Option<QuestionThread>>,
    /// Opened by the first call of `pulse`.
    pulse: Mutex<Option<Connection>>,
    broken: Broken,
    folder: StoreFolder,
    patience: Duration,
    /// Missing if the store was opened for reading.
    owner_file: Option<Arc<OwnerFile>>,
}

impl SqliteStore {
    /// Opens the store in a folder, creating what is missing.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_with(folder, &SqliteOptions::default())
    }

    pub fn open_with(folder: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let store = Self::open_in(folder, options.patience, |_| Ok(ConnectionMode::Shared), false)?;
        store.folder.keep_reserve();
        Ok(store)
    }

    /// Opens an existing store to remove data from it. On a full disk, where sharing the store would need room,
    /// it locks other processes out until it is closed.
    ///
    /// Fails with [`StoreError::Missing`] if there is no store.
    pub fn open_for_removing(folder: &Path) -> Result<Self, StoreError> {
        let patience = SqliteOptions::default().patience;
        StoreFolder::existing(folder)?;
        let mode = |database: &Path| {
            let about = |error| schema::about(database, patience, error);
            ConnectionMode::for_removing(database, patience).map_err(about)
        };
        Self::open_in(folder, patience, mode, true)
    }

    /// Opens an existing store for reading: it creates and changes nothing, needs no room on the disk, and works
    /// in a read-only folder. What would change the store fails with [`StoreError::ReadOnly`].
    ///
    /// Fails with [`StoreError::Missing`] if there is no store.
    pub fn open_for_reading(folder: &Path) -> Result<Self, StoreError> {
        let patience = SqliteOptions::default().patience;
        let folder = StoreFolder::existing(folder)?;
        let mode = schema::check_readable(&folder.database, patience)?;
        Ok(Self {
            writer: None,
            readers: Arc::new(ReadConnections::new(folder.database.clone(), mode, patience)),
            questions: Mutex::new(None),
            pulse: Mutex::new(None),
            broken: Arc::new(OnceLock::new()),
            folder,
            patience,
            owner_file: None,
        })
    }

    fn open_in(
        folder: &Path,
        patience: Duration,
        mode: impl FnOnce(&Path) -> Result<ConnectionMode, StoreError>,
        removes: bool,
    ) -> Result<Self, StoreError> {
        let (folder, opening) = StoreFolder::prepare(folder, patience)?;
        let was_closed = owners::were_all_closed(&folder.owners, &opening);
        let mode = mode(&folder.database)?;
        let connection = schema::open_first(&folder.database, patience, mode, was_closed, removes)?;
        let about = |error| classify::of_database(&folder.database, patience, error);
        let name =
            connection.query_row("SELECT lower(hex(randomblob(16)))", [], |row| row.get(0)).map_err(about)?;
        let broken = Arc::new(OnceLock::new());
        let owner_file = OwnerFile::create(&folder.owners, name, Arc::clone(&broken), &opening)?;
        Ok(Self {
            writer: Some(Writer::start(connection, &folder, patience, Arc::clone(&broken), removes)?),
            readers: Arc::new(ReadConnections::new(folder.database.clone(), mode, patience)),
            questions: Mutex::new(None),
            pulse: Mutex::new(None),
            broken,
            folder,
            patience,
            owner_file: Some(Arc::new(owner_file)),
        })
    }

    pub fn is_in(folder: &Path) -> Result<bool, StoreError> {
        StoreFolder::has_database(folder)
    }

    pub fn database(&self) -> PathBuf {
        self.folder.database.clone()
    }

    /// Runs a change on the writer thread and waits for its result.
    fn change<T, E, W>(&self, durability: Durability, work: W) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        W: FnMut(&mut StoreTransaction<'_>) -> ChangeResult<T, E> + Send + 'static,
    {
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = move |outcome| {
            let _ = sender.send(outcome);
        };
        self.send(Box::new(ClosureTask::new(durability, work, done)));
        receiver.recv().unwrap_or_else(|_| Err(StoreError::closed().into()))
    }

    fn send(&self, task: Box<dyn WriteTask>) {
        match &self.writer {
            Some(writer) => writer.send(task),
            None => task.finish(Err(self.read_only())),
        }
    }

    fn read_only(&self) -> StoreError {
        StoreError::ReadOnly { path: self.folder.path.clone() }
    }

    fn own_file(&self) -> Result<Arc<OwnerFile>, StoreError> {
        self.owner_file.clone().ok_or_else(|| self.read_only())
    }

    fn read_with<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        match self.broken.get() {
            Some(error) => Err(error.clone()),
            None => self.readers.query(question),
        }
    }

    fn claim_writing_with(
        &self,
        durability: Durability,
        aggregate: &AggregateId,
        appends: UnderClaim,
    ) -> Result<Result<Claim, AppendError>, ClaimError> {
        let (aggregate, owner_file) = (aggregate.clone(), self.own_file()?);
        self.change(durability, move |transaction| {
            let claim = match transaction.claim(&aggregate, owner_file.name())? {
                Ok(claim) => claim,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let written = transaction.append(&appends(&claim))?;
            if written.is_err() {
                // Only an unused epoch remains.
                drop(transaction.release(&claim)?);
            }
            Ok(Ok(written.map(|_| claim)))
        })
    }

    fn known(&self, aggregate: &AggregateId) -> Result<Option<JournalHead>, StoreError> {
        self.read_with(|connection| heads::find(connection, aggregate))
    }
}

impl Store for SqliteStore {
    fn submit(&self, appends: Vec<Append>, done: OnAppended) {
        let work = move |transaction: &mut StoreTransaction<'_>| transaction.append(&appends);
        let change = ClosureTask::new(Durability::Synced, work, done);
        self.send(Box::new(change));
    }

    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError> {
        Ok(self.known(aggregate)?.map(|known| known.head))
    }

    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError> {
        let found = self.read_with(|connection| heads::number(connection, aggregate))?;
        let Some((number, _)) = found else {
            return Ok(Box::new(std::iter::empty()));
        };
        let reading = JournalReader::new(&self.readers, aggregate.clone(), number, after)?;
        Ok(Box::new(reading))
    }

    fn list(&self, family: &str, prefix: &str) -> Result<Vec<ListedAggregate>, StoreError> {
        self.read_with(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT id, epoch, (SELECT first + count - 1 FROM batches
                                    WHERE aggregate = number ORDER BY first DESC LIMIT 1) AS version
                 FROM aggregates WHERE family = ?1 AND id >= ?2 ORDER BY id",
            )?;
            let mut found = select.query((family, prefix))?;
            let mut listed = vec![];
            while let Some(row) = found.next()? {
                let id: String = row.get(0)?;
                // Sorted by id, those with the prefix are adjacent.
                if !id.starts_with(prefix) {
                    break;
                }
                let head = heads::head(row.get(1)?, row.get(2)?);
                if head.version > Version::EMPTY
                    && let Ok(aggregate) = AggregateId::new(family, id)
                {
                    listed.push(ListedAggregate { aggregate, head });
                }
            }
            Ok(listed)
        })
    }

    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError> {
        let aggregate = aggregate.clone();
        self.change(Durability::Unsynced, move |transaction| transaction.trim(&aggregate, before))
    }

    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError> {
        let removed = aggregate.clone();
        let number =
            self.change(Durability::Synced, move |transaction| transaction.remove(&removed, epoch))?;
        if let Some(number) = number {
            snapshots::remove(&self.folder.snapshots, number);
        }
        Ok(())
    }

    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError> {
        let (aggregate, owner_file) = (aggregate.clone(), self.own_file()?);
        self.change(Durability::Synced, move |transaction| transaction.claim(&aggregate, owner_file.name()))
    }

    fn claim_writing(
        &self,
        aggregate: &AggregateId,
        appends: UnderClaim,
    ) -> Result<Result<Claim, AppendError>, ClaimError> {
        self.claim_writing_with(Durability::Synced, aggregate, appends)
    }

    fn claim_writing_ahead(
        &self,
        aggregate: &AggregateId,
        appends: UnderClaim,
    ) -> Result<Result<Claim, AppendError>, ClaimError> {
        self.claim_writing_with(Durability::Soon, aggregate, appends)
    }

    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError> {
        match self.read_with(|connection| owners::owner_name(connection, aggregate))? {
            Some(name) => owners::living_owner(&self.folder.owners, &name),
            None => Ok(None),
        }
    }

    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.change(Durability::Synced, move |transaction| transaction.release(&claim))
    }

    fn unclaim_in_background(&self, claim: &Claim) {
        let claim = claim.clone();
        // No sync: after a crash of the machine all owners are dead, and a dead owner blocks no claim.
        let work = move |transaction: &mut StoreTransaction<'_>| transaction.release(&claim);
        let done = |_: Result<(), StoreError>| {};
        let change = ClosureTask::new(Durability::Background, work, done);
        self.send(Box::new(change));
    }

    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError> {
        let aggregate = aggregate.clone();
        self.change(Durability::Synced, move |transaction| transaction.request(&aggregate, &bytes))
    }

    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError> {
        let rows: Vec<(i64, Vec<u8>)> = self.read_with(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT requests.id, body FROM requests JOIN aggregates ON aggregate = number
                 WHERE family = ?1 AND aggregates.id = ?2 ORDER BY requests.id",
            )?;
            let rows = select
                .query_map((aggregate.family(), aggregate.id()), |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })?;
        decode_requests(aggregate, rows)
    }

    fn ask(&self, question: Question, done: OnFindings) {
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let started = match questions.take() {
            Some(questions) => Ok(questions),
            None => QuestionThread::start(Responder {
                readers: Arc::clone(&self.readers),
                owners: self.folder.owners.clone(),
                owner_file: self.owner_file.clone(),
                broken: Arc::clone(&self.broken),
            }),
        };
        match started {
            Ok(started) => questions.insert(started).ask(question, done),
            Err(error) => done(Err(classify::of_files(&self.folder.database, error))),
        }
    }

    fn save_snapshot(&self, aggregate: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.own_file()?;
        let known =
            self.known(aggregate)?.ok_or_else(|| StoreError::NotFound { aggregate: aggregate.clone() })?;
        if at > known.head.version {
            return Err(StoreError::AheadOfJournal {
                aggregate: aggregate.clone(),
                at,
                head: known.head.version,
            });
        }
        snapshots::save(&self.folder.snapshots, known, aggregate, at, &bytes)
    }

    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<FoundSnapshot, StoreError> {
        match self.known(aggregate)? {
            None => Ok(FoundSnapshot::default()),
            Some(known) => snapshots::latest(&self.folder.snapshots, known, aggregate),
        }
    }

    fn compact(&self) -> Result<[u64; 2], StoreError> {
        let size = || {
            let log = self.folder.database.with_extension("db-wal");
            let of = |path: &Path| path.metadata().map_or(0, |found| found.len());
            let log = of(&log).saturating_sub(checkpoint::SHORTEST_LOG);
            of(&self.folder.database).saturating_add(log)
        };
        self.own_file()?;
        let before = size();
        let [connection, other] = [self.readers.open()?, self.readers.open()?];
        let compacted = compaction::compact([&connection, &other], &self.folder, self.patience);
        if let Compaction::NoRoom { missing } = self.readers.classified(compacted)? {
            return Err(StoreError::NoRoomToCompact { path: self.database(), missing });
        }
        Ok([before, size()])
    }

    fn pulse(&self) -> Result<u64, StoreError> {
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        let mut pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match pulse.take() {
            Some(connection) => connection,
            None => self.readers.open()?,
        };
        let number = heads::data_version(pulse.insert(connection));
        Ok(u64::from_ne_bytes(self.readers.classified(number)?.to_ne_bytes()))
    }
}
