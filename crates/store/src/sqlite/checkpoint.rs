//! When the write-ahead log is moved into the database.
//!
//! SQLite would do it inside a commit, before the commit is acknowledged. We do it between commits: early
//! if no task is waiting, in any case before the log becomes long. Its length is an estimate of what this
//! process has written; other processes estimate their own share.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};

const PAGE: usize = 4096;
/// Pages a commit writes besides the records: the index, and what both tables share.
const OVERHEAD: usize = 3;
/// 4 MiB: worth moving while no task is waiting.
const WORTHWHILE: usize = 1024;
/// 32 MiB: moved even if a task is waiting.
const LONG: usize = 8192;
/// Reading 256 KiB of log at every opening soon costs more than moving them once.
const TO_READ: i64 = 64;

/// The length of a log that is worth moving: each page with its header, and some pages for the commits
/// that were under way.
const FULL_LOG: u64 = (1024 + 64) * (4096 + 24);

/// The length of a log after [`cut`]: its header, and one page with its header.
pub(super) const SHORTEST_LOG: u64 = 32 + 24 + 4096;

/// Moves what can be moved without waiting for readers or writers.
pub(super) fn now(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Whether the log takes a while to read, which the first process that opens a store has to do.
pub(super) fn is_long(connection: &Connection) -> rusqlite::Result<bool> {
    let [pages, moved]: [i64; 2] =
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok([row.get(1)?, row.get(2)?]))?;
    Ok(pages.saturating_sub(moved) > TO_READ)
}

/// Moves everything, and truncates the log. While others read or write, the log keeps its length.
///
/// Not by `wal_checkpoint(TRUNCATE)`, which truncates a log that is still valid, without a sync: a file
/// system without a journal may keep the length and the first commits and lose later ones, and the old
/// pages are then played over the newer database. So a commit restarts the log, whose header is synced,
/// and only the part that is no longer valid is truncated.
pub(super) fn cut(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let began = Instant::now();
    // SQLite waits for readers and writers, but not for another checkpoint, such as our own writer's.
    while connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))?
        && began.elapsed() < patience
    {
        thread::sleep(Duration::from_millis(2));
    }
    // The commit that restarts a log truncates it to this limit, or to its own end.
    connection.pragma_update(None, "journal_size_limit", 0)?;
    let commit = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Writes a page without changing anything.
    let format: i64 = commit.pragma_query_value(None, "user_version", |row| row.get(0))?;
    commit.pragma_update(None, "user_version", format)?;
    commit.commit()
}

/// Fills the log of a new store with zeros, which are not commits, up to the length at which it is moved.
/// Syncing over existing bytes takes a third of the time of syncing a file that grows. If the disk is too
/// full for it, the log grows with its commits.
pub(super) fn lengthen(log: &Path) {
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

/// Our estimate of the length of the log.
#[derive(Debug, Default)]
pub(super) struct Log {
    pages: usize,
}

impl Log {
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
    use super::{LONG, Log};

    #[test]
    fn a_log_is_moved_when_nobody_waits_or_when_it_is_long() {
        let mut log = Log::default();
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
    fn small_commits_count_too() {
        let mut log = Log::default();
        for _ in 0..LONG {
            log.grows(60);
        }
        assert!(log.is_due(true));
    }
}
