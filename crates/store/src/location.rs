//! The location of a store, as a user names it.
//!
//! This module is the only one in the product that chooses an implementation; everything else has an
//! `Arc<dyn Store>`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{SqliteStore, Store, StoreError};

/// The folder of a SQLite database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location(PathBuf);

impl Location {
    /// [`StoreError::Io`] if the name is relative and there is no current directory.
    pub fn named(name: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(name);
        let unknown = |source| StoreError::Io { path: name.to_owned(), source: Arc::new(source) };
        path.map(Self).map_err(unknown)
    }

    /// Opens the store, creating what is missing.
    pub fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(SqliteStore::open(&self.0)?))
    }

    /// Opens an existing store for reading. See [`SqliteStore::open_for_reading`].
    pub fn open_for_reading(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(SqliteStore::open_for_reading(&self.0)?))
    }

    /// Opens an existing store to remove data. See [`SqliteStore::open_for_removing`].
    pub fn open_for_removing(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(SqliteStore::open_for_removing(&self.0)?))
    }

    /// Whether a store was created there. Checks local files only.
    pub fn is_created(&self) -> Result<bool, StoreError> {
        SqliteStore::is_in(&self.0)
    }

    /// The folder that the store shares with the local files of its processes, if any.
    pub fn folder(&self) -> Option<&Path> {
        Some(&self.0)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}
