//! Where a store is, as a user names it.
//!
//! The only place in the product that chooses a store; everything else has an `Arc<dyn Store>`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::StoreError;
use crate::sqlite::SqliteStore;
use crate::store::Store;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A SQLite database in this folder.
    Folder(PathBuf),
}

impl Location {
    /// The location with this name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the name is relative and there is no current directory.
    pub fn named(name: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(name).map_err(|source| StoreError::Io {
            path: name.to_owned(),
            source: Arc::new(source),
        })?;
        Ok(Self::Folder(path))
    }

    /// Opens the store, creating what is missing.
    ///
    /// # Errors
    ///
    /// [`StoreError`], if there is something else, or its surroundings are not fit for a store.
    pub fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        match self {
            Self::Folder(path) => Ok(Arc::new(SqliteStore::open(path)?)),
        }
    }

    /// Whether a store was created there. Looks at files only; a location that is reached over a network
    /// answers `false`.
    pub fn is_created(&self) -> bool {
        match self {
            Self::Folder(path) => SqliteStore::is_in(path),
        }
    }

    /// The folder the store shares with the files of the processes that use it, if it is in one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(path) => Some(path),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
        }
    }
}
