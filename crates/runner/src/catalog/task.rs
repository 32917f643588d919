//! What is asked of the thread that writes the catalog.

use std::sync::{Arc, Mutex, mpsc};

use undaunted_engine::catalog::{Catalog, CatalogEvent};

use crate::journal::JournalError;
use crate::locked;

pub(super) trait CatalogTask: Send {
    /// What to write, given this catalog. Called again after a conflict; the last answer counts.
    fn decide(&mut self, catalog: &Catalog) -> Vec<CatalogEvent>;

    /// Whether it waits for the end of an outage, instead of being answered with the error.
    fn waits(&self) -> bool {
        false
    }

    /// Says whether what was decided last is on the disk.
    fn answer(self: Box<Self>, written: Result<(), JournalError>);
}

/// The outer error is the store's, the inner one the refusal of `decide`.
pub(super) type ChangeResult<E> = Result<Result<Vec<CatalogEvent>, E>, JournalError>;

pub(super) struct CatalogChange<D, E> {
    pub(super) decide: D,
    pub(super) decided: Option<Result<Vec<CatalogEvent>, E>>,
    pub(super) tell: mpsc::SyncSender<ChangeResult<E>>,
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
        // If the caller has gone, the outcome is not needed.
        let _ = self.tell.send(written.map(|()| decided));
    }
}

/// The first error of a [`Note`], which has no caller to report to.
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
