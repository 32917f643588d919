//! The writer thread, the only one that writes to the database.
//!
//! Group commit: all changes that arrive during a commit share the next one, so a thousand changes wait for one
//! sync.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::checkpoint::{self, LogLength};
use super::connection::sync_commits;
use super::{ChangeResult, HeadCache, StoreFolder, StoreTransaction, classify};
use crate::{StoreError, failpoint};

/// The most changes that share a commit. It bounds the repeated work if one of them fails.
const LARGEST_GROUP: usize = 4096;

/// How long background changes wait for others to share their commit.
const BACKGROUND_DELAY: Duration = Duration::from_millis(5);

/// How long a commit of the durability [`Durability::Soon`] waits for the sync of another one.
const SYNC_DELAY: Duration = Duration::from_millis(5);

type Group = Vec<Box<dyn WriteTask>>;

/// Set when it is unknown what reached the disk. From then on everything is refused.
pub(super) type Broken = Arc<OnceLock<StoreError>>;

pub(super) struct Writer {
    tasks: Mutex<Option<Sender<Box<dyn WriteTask>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        folder: &StoreFolder,
        patience: Duration,
        broken: Broken,
        removes: bool,
    ) -> Result<Self, StoreError> {
        let (tasks, arrived) = mpsc::channel();
        // `begin` waits instead.
        let impatient = connection.busy_timeout(Duration::ZERO);
        impatient.map_err(|error| classify::of_database(&folder.database, patience, error))?;
        let mut writer = WriterThread {
            connection,
            syncs: true,
            sync_at: None,
            heads: HeadCache::default(),
            log: LogLength::default(),
            folder: folder.clone(),
            patience,
            broken,
            reserve: removes.then(|| folder.reserve.clone()),
        };
        let thread = thread::Builder::new()
            .name("undaunted-store".to_owned())
            .spawn(move || {
                writer.work(&arrived);
                if removes {
                    // Removing jobs may have used the reserve, and may have made room for another.
                    writer.folder.keep_reserve();
                }
            })
            .map_err(|error| classify::of_files(&folder.path, error))?;
        Ok(Self { tasks: Mutex::new(Some(tasks)), thread: Some(thread) })
    }

    /// Sends a task. If the thread has ended, the task is finished with an error.
    pub(super) fn send(&self, task: Box<dyn WriteTask>) {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let unsent = match &*tasks {
            Some(tasks) => tasks.send(task).err().map(|refused| refused.0),
            None => Some(task),
        };
        drop(tasks);
        if let Some(task) = unsent {
            task.finish(Err(StoreError::closed()));
        }
    }
}

impl Drop for Writer {
    /// Waits until all sent tasks are written.
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut();
        tasks.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take() {
            // If a callback panicked, blocked callers got an error when their tasks were dropped.
            let _ = thread.join();
        }
    }
}

struct WriterThread {
    connection: Connection,
    syncs: bool,
    /// When the log has to be synced, unless a commit does it before.
    sync_at: Option<Instant>,
    heads: HeadCache,
    log: LogLength,
    folder: StoreFolder,
    patience: Duration,
    broken: Broken,
    /// What a handle for removing may give up, until it has.
    reserve: Option<PathBuf>,
}

impl WriterThread {
    fn work(&mut self, arrived: &Receiver<Box<dyn WriteTask>>) {
        let mut next = arrived.recv().ok();
        while let Some(first) = next.take() {
            let mut group = vec![first];
            let more = LARGEST_GROUP.saturating_sub(1);
            group.extend(arrived.try_iter().take(more));
            if durability(&group) == Durability::Background {
                match arrived.recv_timeout(BACKGROUND_DELAY) {
                    Ok(task) => group.push(task),
                    Err(RecvTimeoutError::Timeout) => {}
                    // A background change only releases a claim, and closing the store releases all claims.
                    Err(RecvTimeoutError::Disconnected) => {
                        finish(group, &Ok(()));
                        break;
                    }
                }
            }
            self.write(group);
            next = arrived.try_recv().ok();
            if self.sync_at.is_some_and(|at| at <= Instant::now()) {
                self.sync_log();
            }
            if self.log.is_due(next.is_some()) {
                let _ = self.checkpoint();
            }
            next = next.or_else(|| self.next_task(arrived));
        }
        self.sync_log();
    }

    /// Waits for a task, and meanwhile syncs what has to be synced. None when the store is closed.
    fn next_task(&mut self, arrived: &Receiver<Box<dyn WriteTask>>) -> Option<Box<dyn WriteTask>> {
        if let Some(at) = self.sync_at {
            let rest = at.saturating_duration_since(Instant::now());
            if let Ok(task) = arrived.recv_timeout(rest) {
                return Some(task);
            }
            self.sync_log();
        }
        arrived.recv().ok()
    }

    /// Syncs the log if a commit is not synced that has to be, with an empty commit. If that is refused, because
    /// the disk is full or another process has locked the store, the next commit syncs it.
    fn sync_log(&mut self) {
        if self.sync_at.take().is_none() || self.broken.get().is_some() {
            return;
        }
        let synced = self.sync_if(true).and_then(|()| self.begin()).and_then(|()| {
            let written = checkpoint::write_page(&self.connection);
            let committed = written.and_then(|()| self.connection.execute_batch("COMMIT"));
            committed.map_err(|error| self.undo(error, false))
        });
        if let Err(failure) = synced {
            self.store_error(failure);
        }
    }

    /// Returns whether it succeeded.
    fn checkpoint(&mut self) -> bool {
        self.log.moved();
        let done = checkpoint::run_passive(&self.connection);
        let is_done = done.is_ok();
        if let Err(error) = done
            && classify::unknown_fate(&error)
        {
            // Every commit is in the log, but a failing disk gets no further writes.
            self.store_error(CommitFailure::UnknownFate(error));
        }
        is_done
    }

    fn write(&mut self, mut group: Group) {
        let mut written = self.transact(&mut group);
        // The log cannot grow. After a checkpoint it is written from its beginning again.
        if is_disk_full(&written) && self.checkpoint() {
            written = self.transact(&mut group);
        }
        if is_disk_full(&written)
            && self.reserve.take().is_some_and(|reserve| fs::remove_file(reserve).is_ok())
        {
            written = self.transact(&mut group);
        }
        match written {
            Ok(()) => finish(group, &Ok(())),
            Err(CommitFailure::OneOfMany) if group.len() > 1 => {
                // The database refused one task, and rolled back the others with it.
                for task in group {
                    self.write(vec![task]);
                }
            }
            Err(failure) => finish(group, &Err(self.store_error(failure))),
        }
    }

    fn transact(&mut self, group: &mut Group) -> Result<(), CommitFailure> {
        if let Some(error) = self.broken.get() {
            return Err(CommitFailure::AlreadyBroken(error.clone()));
        }
        let durability = durability(group);
        self.sync_if(durability == Durability::Synced)?;
        self.begin()?;
        let written = match self.run(group) {
            Ok(written) => written,
            Err(error) => return Err(self.undo(error, group.len() > 1)),
        };
        failpoint::pass("commit-before");
        if let Err(error) = self.connection.execute_batch("COMMIT") {
            return Err(self.undo(error, false));
        }
        failpoint::pass("commit-after");
        match durability {
            // The sync of a commit includes all commits before it. One without records perhaps wrote nothing.
            Durability::Synced if written > 0 => self.sync_at = None,
            Durability::Soon => {
                let latest = Instant::now().checked_add(SYNC_DELAY);
                self.sync_at = self.sync_at.or(latest);
            }
            Durability::Background | Durability::Unsynced | Durability::Synced => {}
        }
        self.log.grows(written);
        Ok(())
    }

    /// A commit without a sync is synced by the next synced one, because all are in one log, in order.
    fn sync_if(&mut self, syncs: bool) -> Result<(), CommitFailure> {
        if self.syncs != syncs {
            sync_commits(&self.connection, syncs).map_err(CommitFailure::Refused)?;
            self.syncs = syncs;
        }
        Ok(())
    }

    /// SQLite's own busy handler sleeps up to 100 ms between tries, so a process that commits constantly would
    /// always win.
    fn begin(&mut self) -> Result<(), CommitFailure> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            let result =
                self.connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
            let Err(error) = result else { return Ok(()) };
            let busy = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
            if !busy || began.elapsed() >= self.patience {
                return Err(CommitFailure::Refused(error));
            }
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(Duration::from_millis(5));
        }
    }

    fn run(&mut self, group: &mut Group) -> rusqlite::Result<usize> {
        self.heads.refresh(&self.connection)?;
        let mut transaction = StoreTransaction {
            connection: &self.connection,
            heads: &mut self.heads,
            owners: &self.folder.owners,
            written: 0,
        };
        for task in group {
            task.run(&mut transaction)?;
        }
        Ok(transaction.written)
    }

    fn undo(&mut self, error: rusqlite::Error, alone_may_work: bool) -> CommitFailure {
        self.heads.forget_all();
        let undone = if self.connection.is_autocommit() {
            Ok(()) // SQLite has already rolled back, as it does when the disk is full.
        } else {
            self.connection.execute_batch("ROLLBACK")
        };
        match undone {
            Err(error) => CommitFailure::UnknownFate(error),
            Ok(()) if classify::unknown_fate(&error) => CommitFailure::UnknownFate(error),
            Ok(()) if alone_may_work => CommitFailure::OneOfMany,
            Ok(()) => CommitFailure::Refused(error),
        }
    }

    fn store_error(&self, failure: CommitFailure) -> StoreError {
        match failure {
            CommitFailure::AlreadyBroken(error) => error,
            CommitFailure::OneOfMany => StoreError::closed(),
            CommitFailure::Refused(error) => {
                classify::of_database(&self.folder.database, self.patience, error)
            }
            CommitFailure::UnknownFate(error) => {
                let source = Arc::new(error);
                let error = StoreError::MustReopen { source };
                self.broken.get_or_init(|| error).clone()
            }
        }
    }
}

enum CommitFailure {
    /// The handle was broken before.
    AlreadyBroken(StoreError),
    /// The transaction was rolled back; its changes can be tried one by one.
    OneOfMany,
    Refused(rusqlite::Error),
    /// It is unknown whether the transaction was committed.
    UnknownFate(rusqlite::Error),
}

fn is_disk_full(written: &Result<(), CommitFailure>) -> bool {
    matches!(written, Err(CommitFailure::Refused(error)) if classify::is_disk_full(error))
}

fn durability(group: &Group) -> Durability {
    group.iter().map(|task| task.durability()).max().unwrap_or(Durability::Background)
}

fn finish(group: Group, result: &Result<(), StoreError>) {
    for task in group {
        task.finish(result.clone());
    }
}

/// How soon and how durably a change must be written, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// No caller waits for the change, so it may wait briefly to share a commit with others. A crash of the
    /// machine may lose it.
    Background,
    /// A caller waits for the commit but not for a sync. A crash of the machine may lose the change.
    Unsynced,
    /// A caller waits for the commit, which is synced with the next one or a little later.
    Soon,
    /// The change is on the disk when it is finished.
    Synced,
}

/// A change of any type. After a rollback it may be run again; it is finished once.
pub(super) trait WriteTask: Send {
    /// Makes the change inside a transaction. An error is a database error; a refusal is kept for
    /// [`WriteTask::finish`].
    fn run(&mut self, transaction: &mut StoreTransaction<'_>) -> rusqlite::Result<()>;

    fn durability(&self) -> Durability;

    /// Reports the result of the last run, or why it was not committed.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

/// Runs `work` and passes its result to `done`.
pub(super) struct ClosureTask<T, E, W, D> {
    work: W,
    done: D,
    durability: Durability,
    outcome: Option<Result<T, E>>,
}

impl<T, E, W, D> ClosureTask<T, E, W, D>
where
    W: FnMut(&mut StoreTransaction<'_>) -> ChangeResult<T, E>,
    D: FnOnce(Result<T, E>),
{
    pub(super) fn new(durability: Durability, work: W, done: D) -> Self {
        Self { work, done, durability, outcome: None }
    }
}

impl<T, E, W, D> WriteTask for ClosureTask<T, E, W, D>
where
    T: Send,
    E: From<StoreError> + Send,
    W: FnMut(&mut StoreTransaction<'_>) -> ChangeResult<T, E> + Send,
    D: FnOnce(Result<T, E>) + Send,
{
    fn run(&mut self, transaction: &mut StoreTransaction<'_>) -> rusqlite::Result<()> {
        self.outcome = None;
        self.outcome = Some((self.work)(transaction)?);
        Ok(())
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.outcome) {
            // A refusal is valid even if it was the only result of the transaction.
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::closed().into()),
            (Err(error), _) => Err(error.into()),
        };
        (self.done)(outcome);
    }
}
