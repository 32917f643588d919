//! Which process owns what, and whether it lives.
//!
//! Every handle keeps a file of its own locked for as long as it is open. The kernel ends the lock
//! with the process, however that ends, so that a dead owner is known at once: no heartbeats, no
//! process numbers that somebody else may have by now. The lock is on the open file, which no other
//! program inherits, so commands that outlive us do not keep us alive.

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

/// Our own sign of life.
#[derive(Debug)]
pub(super) struct Sign {
    name: String,
    path: PathBuf,
    broken: Broken,
    #[expect(dead_code, reason = "the lock ends with the file")]
    file: File,
}

impl Sign {
    /// Puts up a sign under a name nobody else has or will have, and takes down those of the dead.
    /// Under the lock, so that nobody takes ours for dead before it is locked.
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
        Ok(Self {
            name,
            path,
            broken,
            file,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // The lock goes with the file. A sign that is taken down says that all is in order; without one
        // that cannot be said, as after a crash.
        if self.broken.get().is_none() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether nobody has the store open, and everybody who had has closed it.
pub(super) fn have_all_left(folder: &Path, _under: &Opening) -> bool {
    fs::read_dir(folder).is_ok_and(|mut signs| signs.next().is_none())
}

/// The name of the owner of an aggregate, who may be dead.
pub(super) fn named(
    connection: &Connection,
    aggregate: &AggregateId,
) -> rusqlite::Result<Option<String>> {
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
    // Shared, so that two who ask at once do not take each other for the owner.
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
        since: SystemTime::UNIX_EPOCH
            .checked_add(since)
            .unwrap_or(SystemTime::UNIX_EPOCH),
    }
}

/// Takes down the signs of the dead. What cannot be taken down now stays until the next time.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // Shared, as in `living`: whoever asks about a dead owner meanwhile must not take us for it.
        if File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}
