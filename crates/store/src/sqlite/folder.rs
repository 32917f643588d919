//! The folder of a store: created if it is missing, private, on a local disk.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{classify, network};
use crate::StoreError;

#[derive(Clone, Debug)]
pub(super) struct StoreFolder {
    pub(super) path: PathBuf,
    pub(super) database: PathBuf,
    pub(super) owners: PathBuf,
    pub(super) snapshots: PathBuf,
    /// A file that is given up to remove data when the disk is full.
    pub(super) reserve: PathBuf,
}

/// The log of a removal, even if the existing log is used up.
pub(super) const RESERVED: u64 = 256 << 10;

/// Held while a store is opened, so that one process at a time creates a store or removes the files of dead
/// owners.
pub(super) struct OpeningLock(#[expect(dead_code, reason = "the lock ends with the file")] File);

impl StoreFolder {
    pub(super) fn database_in(path: &Path) -> PathBuf {
        path.join("undaunted.db")
    }

    fn named(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            database: Self::database_in(path),
            owners: path.join("owners"),
            snapshots: path.join("snapshots"),
            reserve: path.join("reserve"),
        }
    }

    /// Creates the reserve if it is missing and the disk has room for it.
    pub(super) fn keep_reserve(&self) {
        if !self.reserve.exists()
            && let Ok(mut file) = private_file(&self.reserve)
            && std::io::copy(&mut std::io::repeat(0).take(RESERVED), &mut file).is_err()
        {
            drop(std::fs::remove_file(&self.reserve));
        }
    }

    /// Whether the folder contains a database. An empty one was never finished and does not count.
    pub(super) fn has_database(path: &Path) -> Result<bool, StoreError> {
        let database = Self::database_in(path);
        match database.metadata() {
            Ok(found) if found.is_dir() => Err(StoreError::NotAFile { path: database }),
            Ok(found) => Ok(found.len() > 0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                Err(StoreError::NotAFolder { path: path.to_owned() })
            }
            Err(error) => Err(classify::of_files(&database, error)),
        }
    }

    /// The folder of a store that exists. Creates nothing.
    pub(super) fn existing(path: &Path) -> Result<Self, StoreError> {
        if !Self::has_database(path)? {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        network::refuse(path)?;
        let folder = Self::named(path);
        // SQLite only says that it cannot open the file.
        rustix::fs::access(&folder.database, rustix::fs::Access::READ_OK)
            .map_err(|error| classify::of_files(&folder.database, error.into()))?;
        Ok(folder)
    }

    /// Creates what is missing, and takes the opening lock.
    pub(super) fn prepare(path: &Path, patience: Duration) -> Result<(Self, OpeningLock), StoreError> {
        let made = missing(path);
        make_folder(path)?;
        network::refuse(path)?;
        let folder = Self::named(path);
        make_folder(&folder.owners)?;
        let opening = OpeningLock(lock(&path.join("opening.lock"), patience)?);
        // SQLite gives its other files the permissions of this one.
        let database = private_file(&folder.database)?;
        let about = |error| classify::of_files(&folder.database, error);
        let found = database.metadata().map_err(about)?;
        if found.is_dir() {
            return Err(StoreError::NotAFile { path: folder.database });
        }
        if found.len() == 0 {
            // A new file survives a crash only if its folder is synced, a new folder only if its parent is.
            let entries = File::open(path).and_then(|folder| folder.sync_all());
            entries.map_err(|error| classify::of_files(path, error))?;
            // The process that created the folder may have died before it synced the folder's name.
            for name in made.iter().map(PathBuf::as_path).chain([path]) {
                sync_name(name)?;
            }
        }
        Ok((folder, opening))
    }
}

fn missing(path: &Path) -> Vec<PathBuf> {
    let owner_name = path.ancestors().skip(1).take_while(|path| !path.as_os_str().is_empty());
    owner_name.take_while(|path| !path.exists()).map(Path::to_owned).collect()
}

/// Syncs the name of a folder in its parent. If the parent cannot be opened for reading, or its file system
/// cannot sync folders, the store is created anyway.
fn sync_name(path: &Path) -> Result<(), StoreError> {
    let above = match path.parent() {
        None => return Ok(()),
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
    };
    match File::open(above).and_then(|folder| folder.sync_all()) {
        Err(error) if is_unable(error.kind()) => Ok(()),
        synced => synced.map_err(|error| classify::of_files(above, error)),
    }
}

fn is_unable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied
            | ErrorKind::InvalidInput
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::Unsupported
    )
}

/// Creates the folder with mode 0700, unless it exists.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(StoreError::NotAFolder { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| classify::of_files(path, error)),
        Err(error) => Err(classify::of_files(path, error)),
    }
}

/// Opens the file, creating it with mode 0600. Child processes do not inherit it: the standard library
/// opens every file with `O_CLOEXEC`.
pub(super) fn private_file(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| classify::of_files(path, error))
}

fn lock(path: &Path, patience: Duration) -> Result<File, StoreError> {
    let file = private_file(path)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(classify::of_files(path, error)),
            Err(TryLockError::WouldBlock) if began.elapsed() >= patience => {
                return Err(StoreError::Busy { path: path.to_owned(), waited: began.elapsed() });
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(2)),
        }
    }
}
