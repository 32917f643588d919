//! The folder of a process, and in it one folder for each job: what its commands leave, and files they
//! read.
//!
//! All of it is private. The journal says what happened; here is only what is too large for it. Where the
//! store keeps its facts is another matter, even if a store in a folder shares that folder.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use undaunted_store::Location;

use crate::failpoint;
use undaunted_engine::id::ItemId;

/// The folder of this process on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalFolder(PathBuf);

impl LocalFolder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The one that users do not name: `UNDAUNTED_HOME`, or a folder in their home. None if they have no
    /// home.
    pub fn usual() -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = || variable("HOME").map(|home| Path::new(&home).join(".local/state"));
        let state = || variable("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        let own = variable("UNDAUNTED_HOME").map(PathBuf::from);
        own.or_else(|| Some(state()?.join("undaunted"))).map(Self)
    }

    /// The one of a process that uses this store: the folder of the store, or else the usual one.
    pub fn with(store: &Location) -> Option<Self> {
        store.folder().map(Self::new).or_else(Self::usual)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn job(&self, job: &str) -> JobFolder {
        JobFolder {
            path: self.0.join("jobs").join(job),
        }
    }
}

#[derive(Clone, Debug)]
pub struct JobFolder {
    path: PathBuf,
}

impl JobFolder {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the commands write.
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    /// The results of the map.
    pub fn results(&self) -> PathBuf {
        self.path.join("results.json")
    }

    /// The file that holds an item.
    pub fn item(&self, item: ItemId) -> PathBuf {
        self.path
            .join("items")
            .join(format!("{}-{}.json", item.step, item.index))
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
    pub fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes a file of this name.
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
