//! The folder of a job: what its commands leave, and files they read.
//!
//! Beside the store, one for each job, private. The journal says what happened; here is only what is
//! too large for it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failpoint;

/// The folder of one job.
#[derive(Clone, Debug)]
pub struct JobFolder {
    path: PathBuf,
}

impl JobFolder {
    /// The folder of a job of the store in this folder.
    #[must_use]
    pub fn of(store: &Path, job: &str) -> Self {
        Self {
            path: store.join("jobs").join(job),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the commands write.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    /// The results of the map.
    #[must_use]
    pub fn results(&self) -> PathBuf {
        self.path.join("results.json")
    }

    /// The file that holds an item.
    #[must_use]
    pub fn item(&self, step: u32, item: u32) -> PathBuf {
        self.path.join("items").join(format!("{step}-{item}.json"))
    }

    /// Notes that somebody runs the job now.
    pub(crate) fn note_alive(&self) {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path.join("alive"));
        if let Ok(file) = file {
            drop(file.set_modified(SystemTime::now()));
        }
    }

    /// When somebody was last seen running it.
    pub(crate) fn seen_alive(&self) -> Option<SystemTime> {
        let found = self.path.join("alive").metadata().ok()?;
        found.modified().ok()
    }

    /// Makes it, if it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn make(&self) -> io::Result<()> {
        private_folder(&self.path)
    }

    /// Removes it and everything in it. What is not there is removed already.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes a file of this name.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        keep(&self.path.join(name), bytes)
    }
}

/// The longest name of something that is part of paths and addresses.
pub(crate) const LONGEST_NAME: usize = 200;

/// Whether a text may be the name of something that is part of paths and addresses.
pub(crate) fn is_name(id: &str) -> bool {
    let plain = |sign: char| sign.is_alphanumeric() || "_.-+".contains(sign);
    id.chars().all(plain) && id.len() <= LONGEST_NAME && !matches!(id, "" | "." | "..")
}

pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a private file that is there as a whole or not at all, in a private folder.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private_folder(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut file: File = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    failpoint::pass("results-before-rename");
    std::fs::rename(&beside, path)?;
    failpoint::pass("results-after-rename");
    Ok(())
}
