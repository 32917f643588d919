//! The location of a store, as a user names it.
//!
//! This module is the only one in the product that chooses an implementation; everything else has an
//! `Arc<dyn Store>`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::StoreError;
use crate::sqlite::SqliteStore;
use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A SQLite database in this folder.
    Folder(PathBuf),
}

impl Location {
    /// [`StoreError::Io`] if the name is relative and there is no current directory.
    pub fn named(name: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(name)
            .map_err(|source| StoreError::Io { path: name.to_owned(), source: Arc::new(source) })?;
        Ok(Self::Folder(path))
    }

    /// Opens the store, creating what is missing.
    pub fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        match self {
            Self::Folder(path) => Ok(Arc::new(SqliteStore::open(path)?)),
        }
    }

    /// Whether a store was created there. Checks local files only.
    pub fn is_created(&self) -> bool {
        match self {
            Self::Folder(path) => SqliteStore::is_in(path),
        }
    }

    /// The folder that the store shares with the local files of its processes, if any.
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
