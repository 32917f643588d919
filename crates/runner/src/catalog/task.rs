//! Tasks for the thread that writes the catalog.

use std::sync::{Arc, Mutex, mpsc};

use undaunted_engine::catalog::{Catalog, CatalogEvent};

use crate::journal::JournalError;
use crate::locked;

pub(super) trait CatalogTask: Send {
    /// Decides what to write, given this catalog. Called again after a conflict; the last result counts.
    fn decide(&mut self, catalog: &Catalog) -> Vec<CatalogEvent>;

    /// Whether the task waits for the end of an outage, instead of failing with the error.
    fn waits(&self) -> bool {
        false
    }

    /// Called when what was decided last is on disk, or cannot be written.
    fn answer(self: Box<Self>, written: Result<(), JournalError>);
}

/// The outer error is the store's, the inner one the refusal of `decide`.
pub(super) type CatalogChangeResult<E> = Result<Result<Vec<CatalogEvent>, E>, JournalError>;

pub(super) struct CatalogChange<D, E> {
    pub(super) decide: D,
    pub(super) decided: Option<Result<Vec<CatalogEvent>, E>>,
    pub(super) sender: mpsc::SyncSender<CatalogChangeResult<E>>,
}

impl<D, E> CatalogTask for CatalogChange<D, E>
where
    D: FnMut(&Catalog) -> Result<Vec<CatalogEvent>, E> + Send,
    E: Send,
{
    fn decide(&mut self, catalog: &Catalog) -> Vec<CatalogEvent> {
        let decided = (self.decide)(catalog);
        let events = decided.as_ref().map_or_else(|_| Vec::new(), Clone::clone);
        self.decided = Some(decided);
        events
    }

    fn answer(self: Box<Self>, written: Result<(), JournalError>) {
        let decided = self.decided.unwrap_or_else(|| Ok(Vec::new()));
        // The caller may no longer wait.
        let _ = self.sender.send(written.map(|()| decided));
    }
}

/// The first error of a [`CatalogNote`], which has no caller to report to.
#[derive(Clone, Default)]
pub(super) struct FirstError(Arc<Mutex<Option<JournalError>>>);

impl FirstError {
    fn keep(&self, error: JournalError) {
        locked(&self.0).get_or_insert(error);
    }

    pub(super) fn take(&self) -> Option<JournalError> {
        locked(&self.0).take()
    }
}

pub(super) struct CatalogNote {
    pub(super) event: CatalogEvent,
    pub(super) first_error: FirstError,
}

impl CatalogTask for CatalogNote {
    fn decide(&mut self, _: &Catalog) -> Vec<CatalogEvent> {
        vec![self.event.clone()]
    }

    fn waits(&self) -> bool {
        true
    }

    fn answer(self: Box<Self>, written: Result<(), JournalError>) {
        if let Err(error) = written {
            self.first_error.keep(error);
        }
    }
}
