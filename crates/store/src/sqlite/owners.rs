//! Which process owns an aggregate, and whether it is alive.
//!
//! Every handle keeps a file of its own locked while it is open. The kernel releases the lock when the
//! process ends, however it ends, so a dead owner is known at once, without heartbeats and without
//! process ids, which may be reused. The lock is on the open file, which no child process inherits, so a
//! command that outlives its engine does not keep the engine's lock.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension as _};

use super::classify;
use super::place::{Opening, private_file};
use super::writer::Broken;
use crate::aggregate::AggregateId;
use crate::claim::Owner;
use crate::error::StoreError;

#[derive(Debug)]
pub(super) struct Sign {
    name: String,
    path: PathBuf,
    broken: Broken,
    #[expect(dead_code, reason = "the lock ends with the file")]
    file: File,
}

impl Sign {
    /// Creates the file under a name that is never used twice, and removes the files of dead owners. Under
    /// the opening lock, so that no other process takes this owner for dead before the file is locked.
    pub(super) fn put_up(
        folder: &Path,
        name: String,
        broken: Broken,
        _under: &Opening,
    ) -> Result<Self, StoreError> {
        sweep(folder);
        let path = folder.join(&name);
        let mut file = private_file(&path)?;
        let about = |error| classify::of_files(&path, error);
        let Owner { pid, host, since } = Owner::here();
        let since = since.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default().as_millis();
        file.lock().map_err(about)?;
        writeln!(file, "{pid}\n{since}\n{host}").map_err(about)?;
        Ok(Self { name, path, broken, file })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // The lock ends with the file. A removed file says that the store was closed in order; if the
        // handle is broken, the file stays as after a crash.
        if self.broken.get().is_none() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether no handle is open and every earlier one was closed in order.
pub(super) fn have_all_left(folder: &Path, _under: &Opening) -> bool {
    fs::read_dir(folder).is_ok_and(|mut signs| signs.next().is_none())
}

/// The name of the owner of an aggregate, dead or alive.
pub(super) fn named(connection: &Connection, aggregate: &AggregateId) -> rusqlite::Result<Option<String>> {
    let mut select =
        connection.prepare_cached("SELECT owner FROM aggregates WHERE family = ?1 AND id = ?2")?;
    let found = select.query_row((aggregate.family(), aggregate.id()), |row| row.get(0));
    Ok(found.optional()?.flatten())
}

pub(super) fn living(folder: &Path, name: &str) -> Result<Option<Owner>, StoreError> {
    let path = folder.join(name);
    let about = |error| classify::of_files(&path, error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(about(error)),
    };
    // Shared, so that two processes that check at once do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let text = fs::read_to_string(&path).unwrap_or_default();
            Ok(Some(described(&text)))
        }
        Err(TryLockError::Error(error)) => Err(about(error)),
    }
}

fn described(text: &str) -> Owner {
    let mut lines = text.lines();
    let mut number = || lines.next()?.parse::<u64>().ok();
    let (pid, since) = (number(), number());
    let since = Duration::from_millis(since.unwrap_or(0));
    Owner {
        pid: pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0),
        host: lines.next().unwrap_or("?").to_owned(),
        since: SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH),
    }
}

/// Removes the files of dead owners. A file that cannot be removed stays until the next time.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // Shared, as in `living`: a process that checks a dead owner meanwhile must not take us for it.
        if File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}
