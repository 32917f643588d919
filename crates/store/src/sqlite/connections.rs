//! The pool of connections for reading. Readers wait neither for the writer nor for each other.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use super::classify;
use super::connection::ConnectionMode;
use crate::StoreError;

/// The most idle connections that stay open: as many as a starting server reads flows at a time.
const MAX_IDLE: usize = 64;

pub(super) struct ReadConnections {
    database: PathBuf,
    mode: ConnectionMode,
    patience: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl ReadConnections {
    pub(super) fn new(database: PathBuf, mode: ConnectionMode, patience: Duration) -> Self {
        Self { database, mode, patience, idle: Mutex::default() }
    }

    pub(super) fn query<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let answer = question(&connection);
        if self.mode.is_outdated(&self.database) {
            return Err(StoreError::Busy { path: self.database.clone(), waited: Duration::ZERO });
        }
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        drop(idle);
        self.classified(answer)
    }

    /// Opens a connection outside of the pool.
    pub(super) fn open(&self) -> Result<Connection, StoreError> {
        self.classified(self.mode.open(&self.database, self.patience))
    }

    pub(super) fn classified<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| classify::of_database(&self.database, self.patience, error))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
