//! When the log is moved into the database.
//!
//! SQLite would do it inside a commit, before the commit is acknowledged. We do it between commits:
//! soon if nobody waits, in any case before the log becomes long. How long it is, is estimated; other
//! processes estimate their own share.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};

const PAGE: usize = 4096;
/// Pages a commit writes besides the records: the index, and what both tables share.
const OVERHEAD: usize = 3;
/// 4 MiB are worth the trouble.
const WORTHWHILE: usize = 1024;
/// 32 MiB are long enough.
const LONG: usize = 8192;

/// Reading 256 KiB of log again and again costs what moving them once does.
const TO_READ: i64 = 64;

/// How long a log is that was worth the trouble, each page with a header, and some pages for the commits
/// that were under way.
const FULL_LOG: u64 = (1024 + 64) * (4096 + 24);

/// What [`cut`] leaves of a log: its header, and a page with a header of its own.
pub(super) const SHORTEST_LOG: u64 = 32 + 24 + 4096;

/// Moves what can be moved, without waiting for anybody.
pub(super) fn now(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Whether the log takes a while to be read, which whoever opens a store alone has to do.
pub(super) fn is_long(connection: &Connection) -> rusqlite::Result<bool> {
    let [pages, moved]: [i64; 2] =
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
            Ok([row.get(1)?, row.get(2)?])
        })?;
    Ok(pages.saturating_sub(moved) > TO_READ)
}

/// Moves everything, and cuts the log. If others read or write meanwhile it stays as long as it is.
///
/// Not by `wal_checkpoint(TRUNCATE)`, which cuts a log that still counts and does not sync that: a
/// file system without a journal may keep the length and the first commits and lose some later ones,
/// and the old pages are played over the newer database. So the log is begun anew by a commit, whose
/// header is synced, and only what no longer counts is cut.
pub(super) fn cut(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let began = Instant::now();
    // SQLite waits for readers and writers, but not for another who moves the log: our own writer may.
    while connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))?
        && began.elapsed() < patience
    {
        thread::sleep(Duration::from_millis(2));
    }
    // The commit that begins a log anew cuts it to this, or to its own end.
    connection.pragma_update(None, "journal_size_limit", 0)?;
    let commit = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // It says what is so already: a page is written, and nothing changes.
    let format: i64 = commit.pragma_query_value(None, "user_version", |row| row.get(0))?;
    commit.pragma_update(None, "user_version", format)?;
    commit.commit()
}

/// Makes the log of a new store as long as logs become before they are moved, with zeros, which are no
/// commits. To sync what lies over old bytes takes a third of the time that it takes if the file grows. On
/// a disk that is too full it grows as commits come.
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

/// How many pages the log has by our estimate.
#[derive(Debug, Default)]
pub(super) struct Log {
    pages: usize,
}

impl Log {
    /// A commit with so many bytes of records.
    pub(super) fn grows(&mut self, bytes: usize) {
        let pages = bytes.div_ceil(PAGE).saturating_add(OVERHEAD);
        self.pages = self.pages.saturating_add(pages);
    }

    /// Whether now is the time.
    pub(super) fn is_due(&self, somebody_waits: bool) -> bool {
        self.pages >= if somebody_waits { LONG } else { WORTHWHILE }
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
