//! The one thread that writes.
//!
//! Group commit: all changes that arrived while the last commit was syncing share the next one, so a
//! thousand changes wait for one sync, like a single one.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::checkpoint::{self, Log};
use super::heads::Heads;
use super::ledger::Ledger;
use super::task::{Haste, Task};
use super::{classify, place::Folder, schema};
use crate::error::StoreError;
use crate::failpoint;

/// The most changes that share a commit; it bounds the repeated work if one fails.
const LARGEST_GROUP: usize = 4096;

/// How long fleeting changes wait for others to share their commit.
const NO_HURRY: Duration = Duration::from_millis(5);

type Group = Vec<Box<dyn Task>>;

/// Set when it is unknown what reached the disk; from then on everything is refused.
pub(super) type Broken = Arc<OnceLock<StoreError>>;

pub(super) struct Writer {
    tasks: Mutex<Option<Sender<Box<dyn Task>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        folder: &Folder,
        patience: Duration,
        broken: Broken,
    ) -> Result<Self, StoreError> {
        let (tasks, arrived) = mpsc::channel();
        // `begin` does the waiting.
        let impatient = connection.busy_timeout(Duration::ZERO);
        impatient.map_err(|error| classify::of_database(&folder.database, patience, error))?;
        let mut desk = Desk {
            connection,
            syncs: true,
            heads: Heads::default(),
            log: Log::default(),
            database: folder.database.clone(),
            owners: folder.owners.clone(),
            patience,
            broken,
        };
        let thread = thread::Builder::new()
            .name("undaunted-store".to_owned())
            .spawn(move || desk.work(&arrived))
            .map_err(|error| classify::of_files(&folder.path, error))?;
        Ok(Self { tasks: Mutex::new(Some(tasks)), thread: Some(thread) })
    }

    /// The task is finished in any case, with an error if the thread has ended.
    pub(super) fn send(&self, task: Box<dyn Task>) {
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
    /// Writes the tasks that were sent before the store is closed.
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut();
        tasks.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.take() {
            // After a panic of a callback, blocked callers got an error when their tasks were dropped.
            let _ = thread.join();
        }
    }
}

struct Desk {
    connection: Connection,
    syncs: bool,
    heads: Heads,
    log: Log,
    database: PathBuf,
    owners: PathBuf,
    patience: Duration,
    broken: Broken,
}

impl Desk {
    fn work(&mut self, arrived: &Receiver<Box<dyn Task>>) {
        let mut next = arrived.recv().ok();
        while let Some(first) = next.take() {
            let mut group = vec![first];
            let more = LARGEST_GROUP.saturating_sub(1);
            group.extend(arrived.try_iter().take(more));
            if haste(&group) == Haste::Fleeting {
                match arrived.recv_timeout(NO_HURRY) {
                    Ok(task) => group.push(task),
                    Err(RecvTimeoutError::Timeout) => {}
                    // A fleeting change only releases a claim, and closing the store releases all.
                    Err(RecvTimeoutError::Disconnected) => return finish(group, &Ok(())),
                }
            }
            self.write(group);
            next = arrived.try_recv().ok();
            if self.log.is_due(next.is_some()) {
                self.checkpoint();
            }
            next = next.or_else(|| arrived.recv().ok());
        }
    }

    fn checkpoint(&mut self) {
        self.log.moved();
        if let Err(error) = checkpoint::now(&self.connection)
            && classify::unknown_fate(&error)
        {
            // Every commit is in the log, but a failing disk is not trusted with more.
            self.told(Trouble::Unknown(error));
        }
    }

    fn write(&mut self, mut group: Group) {
        match self.transact(&mut group) {
            Ok(()) => finish(group, &Ok(())),
            Err(Trouble::OfOne) if group.len() > 1 => {
                // The database refused one of them, and rolled the others back with it.
                for task in group {
                    self.write(vec![task]);
                }
            }
            Err(trouble) => finish(group, &Err(self.told(trouble))),
        }
    }

    fn transact(&mut self, group: &mut Group) -> Result<(), Trouble> {
        if let Some(error) = self.broken.get() {
            return Err(Trouble::Known(error.clone()));
        }
        self.sync_if(haste(group) == Haste::Lasting)?;
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
        self.log.grows(written);
        Ok(())
    }

    /// A commit without a sync is synced with the next one that has one: all are in one log, in order.
    fn sync_if(&mut self, syncs: bool) -> Result<(), Trouble> {
        if self.syncs != syncs {
            schema::sync_commits(&self.connection, syncs).map_err(Trouble::Told)?;
            self.syncs = syncs;
        }
        Ok(())
    }

    /// SQLite's own busy handler sleeps up to 100 ms between tries, so a process that commits all the time
    /// would always win.
    fn begin(&mut self) -> Result<(), Trouble> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            let result =
                self.connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
            let Err(error) = result else { return Ok(()) };
            let busy = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
            if !busy || began.elapsed() >= self.patience {
                return Err(Trouble::Told(error));
            }
            thread::sleep(pause);
            pause = pause.saturating_mul(2).min(Duration::from_millis(5));
        }
    }

    fn run(&mut self, group: &mut Group) -> rusqlite::Result<usize> {
        self.heads.refresh(&self.connection)?;
        let mut ledger =
            Ledger { connection: &self.connection, heads: &mut self.heads, owners: &self.owners, written: 0 };
        for task in group {
            task.run(&mut ledger)?;
        }
        Ok(ledger.written)
    }

    fn undo(&mut self, error: rusqlite::Error, alone_may_work: bool) -> Trouble {
        self.heads.forget_all();
        let undone = if self.connection.is_autocommit() {
            Ok(()) // SQLite has rolled back itself, as it does when the disk is full.
        } else {
            self.connection.execute_batch("ROLLBACK")
        };
        match undone {
            Err(error) => Trouble::Unknown(error),
            Ok(()) if classify::unknown_fate(&error) => Trouble::Unknown(error),
            Ok(()) if alone_may_work => Trouble::OfOne,
            Ok(()) => Trouble::Told(error),
        }
    }

    fn told(&self, trouble: Trouble) -> StoreError {
        match trouble {
            Trouble::Known(error) => error,
            Trouble::OfOne => StoreError::closed(),
            Trouble::Told(error) => classify::of_database(&self.database, self.patience, error),
            Trouble::Unknown(error) => {
                let source = Arc::new(error);
                let error = StoreError::MustReopen { source };
                self.broken.get_or_init(|| error).clone()
            }
        }
    }
}

enum Trouble {
    /// The store was broken before.
    Known(StoreError),
    /// Rolled back; each of its changes may be tried alone.
    OfOne,
    Told(rusqlite::Error),
    /// Perhaps rolled back.
    Unknown(rusqlite::Error),
}

fn haste(group: &Group) -> Haste {
    let all = group.iter().map(|task| task.haste());
    all.max().unwrap_or(Haste::Fleeting)
}

fn finish(group: Group, result: &Result<(), StoreError>) {
    for task in group {
        task.finish(result.clone());
    }
}
