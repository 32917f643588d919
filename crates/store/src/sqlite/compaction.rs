//! Returning the space of removed data to the file system, also on a disk that is almost full.
//!
//! A checkpoint or `VACUUM` that runs out of room keeps what it has written so far. So each step is taken only if
//! the disk has room for all of it; on a full disk the unused part of the log and the reserve count as room. The
//! reserve is for removing jobs: it is given up only if the step frees enough to make it again.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::checkpoint::{FRAME, LOG_HEADER, SHORTEST_LOG, truncate_log};
use super::connection::log_of;
use super::folder::RESERVED;
use super::{StoreFolder, classify};

const PAGE: u64 = 4096;
/// Pages that the file system may need for itself, or that a rewritten database may have more.
const SLACK: u64 = 4;

pub(super) enum Compaction {
    Done,
    /// Nothing was changed: these bytes are missing for the smallest step.
    NoRoom {
        missing: u64,
    },
}

/// Rewrites the database without the pages of removed data, and truncates the log. If the disk has no room to
/// rewrite, truncating the log is all that can be done, and where there is no room for that either, nothing.
pub(super) fn compact(
    [connection, other]: [&Connection; 2],
    folder: &StoreFolder,
    patience: Duration,
) -> rusqlite::Result<Compaction> {
    let mut is_truncated = false;
    loop {
        let space = Space::measure(other, folder)?;
        let steps: &[CompactionStep] = if is_truncated {
            &[CompactionStep::Rewrite]
        } else {
            &[CompactionStep::Rewrite, CompactionStep::Truncate]
        };
        let possible = steps.iter().find_map(|step| Some((*step, space.payment(*step)?)));
        let Some((step, payment)) = possible else {
            let missing = space.needed(CompactionStep::Truncate, space.log).saturating_sub(space.room);
            return Ok(if is_truncated { Compaction::Done } else { Compaction::NoRoom { missing } });
        };
        let taken = pay(payment, [connection, other], folder).and_then(|()| match step {
            CompactionStep::Rewrite => rewrite(connection).and_then(|()| truncate_log(connection, patience)),
            CompactionStep::Truncate => truncate_log(connection, patience),
        });
        if taken.as_ref().is_err_and(classify::is_disk_full) {
            // Another program has taken the room. What was written of an unfinished transaction is given back.
            drop(cut_log([connection, other], &folder.database, space.log));
        }
        folder.keep_reserve();
        taken?;
        match step {
            CompactionStep::Rewrite => return Ok(Compaction::Done),
            CompactionStep::Truncate => is_truncated = true,
        }
    }
}

#[derive(Clone, Copy)]
enum CompactionStep {
    /// The database is rewritten into the log, and the log moved into the database.
    Rewrite,
    /// The log is moved into the database.
    Truncate,
}

/// What is given up for a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Payment {
    Nothing,
    UnusedLog,
    /// And the unused part of the log.
    Reserve,
}

/// Bytes, except the pages.
#[cfg_attr(test, derive(Clone, Copy))]
struct Space {
    /// Free on the disk.
    room: u64,
    reserve: u64,
    database: u64,
    log: u64,
    used_log: u64,
    /// Of the database with its log.
    pages: u64,
    /// Without those of removed data.
    live: u64,
}

impl Space {
    fn measure(connection: &Connection, folder: &StoreFolder) -> rusqlite::Result<Self> {
        let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
        let pages = unsigned(number("page_count")?);
        let length = |path: &Path| path.metadata().map_or(0, |found| found.len());
        let log = length(&log_of(&folder.database));
        Ok(Self {
            room: room_in(&folder.path),
            // A file system may compress zeros.
            reserve: folder
                .reserve
                .metadata()
                .map_or(0, |found| found.len().min(found.blocks().saturating_mul(512))),
            database: length(&folder.database),
            log,
            used_log: used_log(connection)?.min(log),
            pages,
            live: pages.saturating_sub(unsigned(number("freelist_count")?)),
        })
    }

    /// The least that has to be given up to take this step for certain; `None` if there is not enough.
    fn payment(&self, step: CompactionStep) -> Option<Payment> {
        let all = self.room.saturating_add(self.log.saturating_sub(self.used_log));
        if self.needed(step, self.log) <= self.room {
            return Some(Payment::Nothing);
        }
        if self.needed(step, self.used_log) <= all {
            return Some(Payment::UnusedLog);
        }
        let all = all.saturating_add(self.reserve);
        (self.needed(step, self.used_log) <= all && self.room_after(step) >= RESERVED)
            .then_some(Payment::Reserve)
    }

    /// How much longer this step makes the files, if the log has this length before.
    fn needed(&self, step: CompactionStep, log: u64) -> u64 {
        let longest_log = match step {
            CompactionStep::Rewrite => self.rewritten().saturating_mul(FRAME).saturating_add(self.used_log),
            CompactionStep::Truncate => LOG_HEADER.saturating_add(FRAME),
        };
        let log = longest_log.saturating_sub(log);
        match log.saturating_add(self.database_after(step).saturating_sub(self.database)) {
            0 => 0,
            needed => needed.saturating_add(SLACK.saturating_mul(PAGE)),
        }
    }

    /// The room after this step, if everything was given up for it.
    fn room_after(&self, step: CompactionStep) -> u64 {
        let all = [self.reserve, self.database, self.log].into_iter().fold(self.room, u64::saturating_add);
        all.saturating_sub(SHORTEST_LOG).saturating_sub(self.database_after(step))
    }

    fn database_after(&self, step: CompactionStep) -> u64 {
        match step {
            CompactionStep::Rewrite => self.rewritten().saturating_mul(PAGE),
            CompactionStep::Truncate => self.pages.saturating_mul(PAGE).max(self.database),
        }
    }

    /// The most pages of the rewritten database.
    fn rewritten(&self) -> u64 {
        self.live.saturating_add(self.live / 16).saturating_add(SLACK)
    }
}

/// The bytes that this user may still write on the disk of this folder. Where that is unknown, trying tells.
fn room_in(folder: &Path) -> u64 {
    match rustix::fs::statvfs(folder) {
        Ok(found) if found.f_blocks > 0 => found.f_bavail.saturating_mul(found.f_frsize),
        Ok(_) | Err(_) => u64::MAX,
    }
}

fn pay(payment: Payment, connections: [&Connection; 2], folder: &StoreFolder) -> rusqlite::Result<()> {
    match payment {
        Payment::Nothing => return Ok(()),
        Payment::UnusedLog => {}
        // If it cannot be removed, there is less room.
        Payment::Reserve => drop(fs::remove_file(&folder.reserve)),
    }
    cut_log(connections, &folder.database, 0)
}

/// Rewrites the database in the log. The temporary file is kept in memory where there is no room for it.
fn rewrite(connection: &Connection) -> rusqlite::Result<()> {
    match connection.execute_batch("VACUUM") {
        Err(error) if classify::is_disk_full(&error) => {
            connection.pragma_update(None, "temp_store", "MEMORY")?;
            connection.execute_batch("VACUUM")
        }
        rewritten => rewritten,
    }
}

/// Cuts the log to this length, but cuts off nothing that is used. Unlike a checkpoint, which may have to make the
/// database longer, this needs no room.
fn cut_log([writer, other]: [&Connection; 2], database: &Path, length: u64) -> rusqlite::Result<()> {
    // Until the rollback no other connection writes. SQLite refuses checkpoints to the connection that holds the lock.
    let lock = Transaction::new_unchecked(writer, TransactionBehavior::Immediate)?;
    let length = length.max(used_log(other)?);
    if let Ok(log) = File::options().write(true).open(log_of(database))
        && log.metadata().is_ok_and(|found| found.len() > length)
    {
        // If it fails, the log keeps its length.
        drop(log.set_len(length));
    }
    lock.rollback()
}

/// The bytes of the log up to the end of the last commit.
fn used_log(connection: &Connection) -> rusqlite::Result<u64> {
    let pages: i64 = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))?;
    // It is negative without a log.
    Ok(u64::try_from(pages).map_or(0, |pages| pages.saturating_mul(FRAME).saturating_add(LOG_HEADER)))
}

#[cfg(test)]
mod tests {
    use super::{CompactionStep, FRAME, LOG_HEADER, PAGE, Payment, RESERVED, Space};

    const FULL: Space = Space {
        room: 0,
        reserve: RESERVED,
        database: PAGE,
        log: LOG_HEADER + 196 * FRAME,
        used_log: LOG_HEADER + 196 * FRAME,
        pages: 190,
        live: 190,
    };

    #[test]
    fn the_reserve_is_kept_if_it_is_not_enough() {
        assert!(
            FULL.payment(CompactionStep::Rewrite).is_none()
                && FULL.payment(CompactionStep::Truncate).is_none()
        );
        let short = Space { log: 40 * FRAME, used_log: 40 * FRAME, pages: 30, live: 30, ..FULL };
        assert!(short.payment(CompactionStep::Truncate).is_none(), "the log is not longer than the shortest");
    }

    #[test]
    fn the_reserve_is_given_up_if_it_can_be_made_again() {
        let removed = Space { live: 12, ..FULL };
        assert!(removed.payment(CompactionStep::Rewrite) == Some(Payment::Reserve));
        assert!(removed.room_after(CompactionStep::Rewrite) >= RESERVED);
    }

    #[test]
    fn room_on_the_disk_and_in_the_log_is_used_before_the_reserve() {
        let empty = Space { room: 4 << 20, ..FULL };
        assert!(empty.payment(CompactionStep::Rewrite) == Some(Payment::Nothing));
        let preallocated = Space { log: 4 << 20, ..FULL };
        assert!(preallocated.payment(CompactionStep::Rewrite) == Some(Payment::UnusedLog));
        let moved = Space { database: 190 * PAGE, ..FULL };
        assert!(moved.payment(CompactionStep::Truncate) == Some(Payment::Nothing));
    }
}
