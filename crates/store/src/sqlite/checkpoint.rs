//! When the write-ahead log is checkpointed: its pages are moved into the database.
//!
//! SQLite would do it inside a commit, before the commit is acknowledged. The writer thread does it between
//! commits: early if no task is waiting, and in any case before the log becomes long. The length is an
//! estimate of what this process has written; other processes estimate their own share.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};

const PAGE: usize = 4096;
/// The bytes of a page in the log, with its header.
pub(super) const FRAME: u64 = 24 + 4096;
pub(super) const LOG_HEADER: u64 = 32;
/// Pages that a commit writes besides the records: the index, and pages that both tables share.
const OVERHEAD: usize = 3;
/// Pages (4 MiB) that are checkpointed if no task is waiting.
const WORTHWHILE: usize = 1024;
/// Pages (32 MiB) that are checkpointed even if a task is waiting.
const LONG: usize = 8192;
/// Pages (256 KiB) whose reading at every opening soon costs more than one checkpoint.
const TO_READ: i64 = 64;

/// The bytes to preallocate: the pages that are worth a checkpoint with their headers, and some pages for
/// commits in progress.
const FULL_LOG: u64 = (1024 + 64) * FRAME;

/// The bytes of a log after [`truncate_log`], for the changes that remove jobs on a full disk: its header, and 64
/// pages with theirs.
pub(super) const SHORTEST_LOG: u64 = LOG_HEADER + 64 * FRAME;

/// Checkpoints as many pages as is possible without waiting for readers or writers.
pub(super) fn run_passive(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Whether the log is slow to read, which the first process that opens a store has to do.
pub(super) fn log_is_long(connection: &Connection) -> rusqlite::Result<bool> {
    let [pages, moved]: [i64; 2] =
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok([row.get(1)?, row.get(2)?]))?;
    Ok(pages.saturating_sub(moved) > TO_READ)
}

/// Checkpoints the whole log and truncates it. While other connections read or write, the log keeps its
/// length.
///
/// `wal_checkpoint(TRUNCATE)` would truncate a log that is still valid, without a sync. A file system without
/// a journal may then keep the length and the first commits but lose later ones, and the old pages would
/// overwrite the newer database. So a commit restarts the log, whose header is synced, and only the invalid
/// part is truncated.
pub(super) fn truncate_log(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let began = Instant::now();
    // SQLite waits for readers and writers, but not for another checkpoint, such as one of the writer thread.
    while connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))?
        && began.elapsed() < patience
    {
        thread::sleep(Duration::from_millis(2));
    }
    // The commit that restarts a log truncates it to this limit, or to its own end if that is later.
    connection.pragma_update(None, "journal_size_limit", SHORTEST_LOG.cast_signed())?;
    let commit = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    write_page(&commit)?;
    commit.commit()
}

/// Writes a page in a transaction without changing anything, so that there is something to commit.
pub(super) fn write_page(connection: &Connection) -> rusqlite::Result<()> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "user_version", format)
}

/// Fills the log of a new store with zeros, which are not valid commits, up to the length at which it is
/// checkpointed. Syncing existing bytes takes a third of the time of syncing a growing file. If the disk has no
/// room, the log grows with its commits.
pub(super) fn preallocate_log(log: &Path) {
    let Ok(file) = File::options().write(true).open(log) else {
        return;
    };
    let Ok(found) = file.metadata() else { return };
    let zeros = vec![0; PAGE];
    let mut at = found.len();
    while at < FULL_LOG {
        if file.write_all_at(&zeros, at).is_err() {
            drop(file.set_len(found.len()));
            return;
        }
        at = at.saturating_add(count(PAGE));
    }
    drop(file.sync_all());
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// An estimate of the length of the log, in pages.
#[derive(Debug, Default)]
pub(super) struct LogLength {
    pages: usize,
}

impl LogLength {
    pub(super) fn grows(&mut self, bytes: usize) {
        let pages = bytes.div_ceil(PAGE).saturating_add(OVERHEAD);
        self.pages = self.pages.saturating_add(pages);
    }

    pub(super) fn is_due(&self, is_task_waiting: bool) -> bool {
        self.pages >= if is_task_waiting { LONG } else { WORTHWHILE }
    }

    pub(super) fn moved(&mut self) {
        self.pages = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{LONG, LogLength};

    #[test]
    fn a_log_is_checkpointed_when_no_task_waits_or_when_it_is_long() {
        let mut log = LogLength::default();
        log.grows(0);
        assert!(!log.is_due(false));
        log.grows(4 << 20);
        assert!(log.is_due(false) && !log.is_due(true));
        log.grows(32 << 20);
        assert!(log.is_due(true));
        log.moved();
        assert!(!log.is_due(false));
    }

    #[test]
    fn small_commits_make_the_log_longer_too() {
        let mut log = LogLength::default();
        for _ in 0..LONG {
            log.grows(60);
        }
        assert!(log.is_due(true));
    }
}
