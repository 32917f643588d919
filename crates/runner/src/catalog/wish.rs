//! What is asked of the thread that writes the catalog.

use std::sync::{Arc, Mutex, mpsc};

use undaunted_engine::catalog::{Catalog, CatalogEvent};

use crate::journal::JournalError;
use crate::lock::locked;

/// Something that somebody wants to have written.
pub(super) trait Wish: Send {
    /// What is to be written, if the catalog is this. Asked again when somebody else was faster; the
    /// last answer counts.
    fn decide(&mut self, catalog: &Catalog) -> Vec<CatalogEvent>;

    /// What was decided last is on the disk, or it is not.
    fn answer(self: Box<Self>, written: Result<(), JournalError>);
}

/// What came of a change: what was written or why nothing was, unless the store has failed.
pub(super) type Changed<E> = Result<Result<Vec<CatalogEvent>, E>, JournalError>;

/// A change that somebody waits for.
pub(super) struct Change<D, E> {
    pub(super) decide: D,
    pub(super) decided: Option<Result<Vec<CatalogEvent>, E>>,
    pub(super) tell: mpsc::SyncSender<Changed<E>>,
}

impl<D, E> Wish for Change<D, E>
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
        // Whoever asked is waiting; if they are gone, nobody wants to know.
        let _ = self.tell.send(written.map(|()| decided));
    }
}

/// What went wrong with something that nobody waited for.
#[derive(Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<JournalError>>>);

impl Trouble {
    fn keep(&self, error: JournalError) {
        let mut kept = locked(&self.0);
        kept.get_or_insert(error);
    }

    pub(super) fn take(&self) -> Option<JournalError> {
        let mut kept = locked(&self.0);
        kept.take()
    }
}

/// A fact that somebody wants to have written, whatever the catalog is.
pub(super) struct Note {
    pub(super) event: CatalogEvent,
    pub(super) trouble: Trouble,
}

impl Wish for Note {
    fn decide(&mut self, _: &Catalog) -> Vec<CatalogEvent> {
        vec![self.event.clone()]
    }

    fn answer(self: Box<Self>, written: Result<(), JournalError>) {
        if let Err(error) = written {
            self.trouble.keep(error);
        }
    }
}
