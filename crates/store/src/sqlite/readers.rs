//! Read-only connections. Readers do not wait for the writer, nor for each other.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::{classify, schema};
use crate::error::StoreError;

/// How many idle connections stay open: as many flows as a starting server reads at a time.
const KEPT: usize = 64;

pub(super) struct Readers {
    database: PathBuf,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(database: PathBuf, patience: Duration) -> Self {
        Self { database, patience, idle: Mutex::default() }
    }

    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let answer = question(&connection);
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push(connection);
        }
        drop(idle);
        self.about(answer)
    }

    /// Opens a connection outside of the pool.
    pub(super) fn open(&self) -> Result<Connection, StoreError> {
        self.about(schema::open(&self.database, self.patience))
    }

    pub(super) fn about<T>(&self, said: rusqlite::Result<T>) -> Result<T, StoreError> {
        said.map_err(|error| classify::of_database(&self.database, self.patience, error))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
