//! The local folder of a process. It has a folder for each job, with the output of its commands and the files
//! they read.
//!
//! It holds only what is too large for the journal, and all of it is private to the user. A store in a folder
//! shares that folder, but none of these files.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use undaunted_policy::Timestamp;
use undaunted_store::Location;

use crate::clock::wall;
use crate::failpoint;
use undaunted_engine::id::ItemId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalFolder(PathBuf);

impl LocalFolder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The default: `UNDAUNTED_HOME`, or a folder in the user's home. None without a home.
    pub fn default_location() -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = || variable("HOME").map(|home| Path::new(&home).join(".local/state"));
        let state = || variable("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        variable("UNDAUNTED_HOME").map(PathBuf::from).or_else(|| Some(state()?.join("undaunted"))).map(Self)
    }

    /// The folder of the store if it has one, else the default one.
    pub fn with(store: &Location) -> Option<Self> {
        store.folder().map(Self::new).or_else(Self::default_location)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn job(&self, job: &str) -> JobFolder {
        JobFolder { path: self.0.join("jobs").join(job) }
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

    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    pub fn results(&self) -> PathBuf {
        self.path.join("results.json")
    }

    /// See [`JobReader`](crate::reader::JobReader).
    pub fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    pub fn item(&self, item: ItemId) -> PathBuf {
        self.path.join("items").join(format!("{}-{}.json", item.step, item.index))
    }

    /// Touches a file, as a sign that a process runs the job.
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

    /// The last sign of a process that runs the job.
    pub fn seen_alive(&self) -> Option<Timestamp> {
        self.path.join("alive").metadata().ok()?.modified().ok().map(wall)
    }

    pub fn make(&self) -> io::Result<()> {
        private_folder(&self.path)
    }

    /// Succeeds if it is already gone.
    pub fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        keep(&self.path.join(name), bytes)
    }
}

/// The longest name that may be part of paths and URLs, in bytes.
pub(crate) const LONGEST_NAME: usize = 200;

/// Whether a text may be part of paths and URLs.
pub(crate) fn is_name(id: &str) -> bool {
    let plain = |sign: char| sign.is_alphanumeric() || "_.-+".contains(sign);
    id.chars().all(plain) && id.len() <= LONGEST_NAME && !matches!(id, "" | "." | "..")
}

pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a private file atomically, in a private folder.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        private_folder(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut file: File =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    if let Err(error) = file.write_all(bytes).and_then(|()| file.sync_all()) {
        // On a full disk the part that was written would only take up room.
        drop(std::fs::remove_file(&beside));
        return Err(error);
    }
    failpoint::pass("results-before-rename");
    std::fs::rename(&beside, path)?;
    failpoint::pass("results-after-rename");
    Ok(())
}
