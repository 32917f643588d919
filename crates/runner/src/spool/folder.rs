//! The folder of a spool: its paths, its privacy, and its lock.
//!
//! It is private to one user, since commands may write secrets. One keeper at a time writes it, under a lock
//! that ends with its process.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SLOTS: &str = "slots";

/// The file with what a keeper writes to its stderr.
pub(crate) fn complaints(folder: &Path) -> PathBuf {
    folder.join("keeper.err")
}

/// The longest path of a socket in bytes, without its final zero.
const SOCKET_PATH: usize = 107;

#[derive(Clone, Debug)]
pub struct Spool {
    folder: PathBuf,
    /// Kept open, since a path through its descriptor is short however long the path of the folder is.
    handle: Arc<File>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    #[error("cannot create the spool `{}`", folder.display())]
    Create { folder: PathBuf, source: io::Error },
    #[error("cannot use the spool `{}`", folder.display())]
    Unusable { folder: PathBuf, source: io::Error },
    #[error("the spool `{}` belongs to user {owner}", folder.display())]
    Foreign { folder: PathBuf, owner: u32 },
    #[error("another process is using the spool `{}`", folder.display())]
    Locked { folder: PathBuf },
}

impl SpoolError {
    pub(crate) fn unusable(folder: &Path) -> impl Fn(io::Error) -> Self + Copy {
        |source| Self::Unusable { folder: folder.to_owned(), source }
    }
}

/// The right to write a spool, until the process ends at the latest.
#[derive(Debug)]
pub(crate) struct SpoolLock {
    _file: File,
}

impl Spool {
    /// Opens the spool in this folder; creates it if needed, and makes it private.
    pub fn open(folder: &Path) -> Result<Self, SpoolError> {
        let mut builder = DirBuilder::new();
        let builder = builder.recursive(true).mode(0o700);
        let create = |source| SpoolError::Create { folder: folder.to_owned(), source };
        builder.create(folder).map_err(create)?;
        let unusable = SpoolError::unusable(folder);
        // The keeper has another working directory, so a relative path would mislead it.
        let folder = std::path::absolute(folder).map_err(unusable)?;
        let handle = File::open(&folder).map_err(unusable)?;
        let found = handle.metadata().map_err(unusable)?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            let owner = found.uid();
            return Err(SpoolError::Foreign { folder, owner });
        }
        if found.mode() & 0o077 != 0 {
            let private = Permissions::from_mode(0o700);
            handle.set_permissions(private).map_err(unusable)?;
        }
        builder.create(folder.join(SLOTS)).map_err(unusable)?;
        let handle = Arc::new(handle);
        Ok(Self { folder, handle })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files of a running command: output and error output.
    pub fn slot(&self, number: u32) -> [PathBuf; 2] {
        ["out", "err"].map(|end| self.slots().join(format!("{number}.{end}")))
    }

    pub(crate) fn slots(&self) -> PathBuf {
        self.folder.join(SLOTS)
    }

    /// Created with the first segment, since most commands write nothing.
    pub(crate) fn segments(&self) -> PathBuf {
        self.folder.join("segments")
    }

    pub(crate) fn segment(&self, number: u32) -> PathBuf {
        self.segments().join(number.to_string())
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// A path of the socket that fits into a socket address: through the open folder if the plain path is too
    /// long. An abstract name would fit too, but any user could connect to it.
    fn socket(&self) -> PathBuf {
        let plain = self.folder.join("socket");
        if plain.as_os_str().as_bytes().len() <= SOCKET_PATH {
            return plain;
        }
        PathBuf::from(format!("/proc/self/fd/{}/socket", self.handle.as_raw_fd()))
    }

    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        self.remove_socket()?;
        UnixListener::bind(self.socket())
    }

    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.socket())
    }

    pub(crate) fn remove_socket(&self) -> io::Result<()> {
        match std::fs::remove_file(self.folder.join("socket")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub(crate) fn lock(&self) -> Result<SpoolLock, SpoolError> {
        let unusable = SpoolError::unusable(&self.folder);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.folder.join("lock"))
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(SpoolLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(SpoolError::Locked { folder: self.folder.clone() }),
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }
}
