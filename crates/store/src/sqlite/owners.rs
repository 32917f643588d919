//! Which process owns an aggregate, and whether it is alive.
//!
//! Every open handle holds a lock on its own file. The kernel releases the lock when the process ends, however
//! it ends, so a dead owner is detected at once, without heartbeats and without process ids, which may be
//! reused. Child processes do not inherit the open file, so a command that outlives its engine does not keep
//! the engine's lock.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension as _};

use super::folder::{OpeningLock, private_file};
use super::{Broken, classify};
use crate::{AggregateId, Owner, StoreError};

#[derive(Debug)]
pub(super) struct OwnerFile {
    name: String,
    path: PathBuf,
    broken: Broken,
    #[expect(dead_code, reason = "the lock ends with the file")]
    file: File,
}

impl OwnerFile {
    /// Removes the files of dead owners and creates this one, under a name that is never used again. The
    /// opening lock keeps other processes from taking this owner for dead before the file is locked.
    pub(super) fn create(
        folder: &Path,
        name: String,
        broken: Broken,
        _under: &OpeningLock,
    ) -> Result<Self, StoreError> {
        sweep(folder);
        let path = folder.join(&name);
        let mut file = private_file(&path)?;
        let about = |error| classify::of_files(&path, error);
        let Owner { pid, host, since } = Owner::current();
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        file.lock().map_err(about)?;
        match write!(file, "{pid}\n{since}\n{host}\n") {
            // The lock is what counts. The content is only shown, and jobs are removed on a full disk too.
            Err(error) if error.kind() == ErrorKind::StorageFull => {}
            written => written.map_err(about)?,
        }
        Ok(Self { name, path, broken, file })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for OwnerFile {
    fn drop(&mut self) {
        // A removed file means that the store was closed properly. The file of a broken handle stays, as
        // after a crash.
        if self.broken.get().is_none() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether no handle is open and every earlier one was closed properly.
pub(super) fn were_all_closed(folder: &Path, _under: &OpeningLock) -> bool {
    fs::read_dir(folder).is_ok_and(|mut signs| signs.next().is_none())
}

/// The name of the owner of an aggregate, dead or alive.
pub(super) fn owner_name(
    connection: &Connection,
    aggregate: &AggregateId,
) -> rusqlite::Result<Option<String>> {
    let mut select =
        connection.prepare_cached("SELECT owner FROM aggregates WHERE family = ?1 AND id = ?2")?;
    Ok(select.query_row((aggregate.family(), aggregate.id()), |row| row.get(0)).optional()?.flatten())
}

pub(super) fn living_owner(folder: &Path, name: &str) -> Result<Option<Owner>, StoreError> {
    let path = folder.join(name);
    let about = |error| classify::of_files(&path, error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(about(error)),
    };
    // A shared lock, so that two processes that check at the same time do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let text = fs::read_to_string(&path).unwrap_or_default();
            Ok(Some(parse_owner(&text)))
        }
        Err(TryLockError::Error(error)) => Err(about(error)),
    }
}

fn parse_owner(text: &str) -> Owner {
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

/// Removes the files of dead owners. A file that cannot be removed stays until the next opening.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // Shared as in `living_owner`: a process that checks this dead owner must not take us for it.
        if File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}
