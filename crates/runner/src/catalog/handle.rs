//! A handle on the catalog of a store.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use undaunted_engine::catalog::{Catalog, CatalogEvent, CatalogRecord};
use undaunted_store::{Store, Version};

use super::shared::SharedCatalog;
use super::task::{CatalogChange, CatalogNote, CatalogTask, FirstError};
use super::{journal, writer};
use crate::journal::JournalError;

/// The catalog of a store. Clones share one state and one writer thread.
#[derive(Clone)]
pub struct CatalogHandle {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<SharedCatalog>,
    first_error: FirstError,
    /// `None` once the last handle is dropped, which ends the thread.
    queue: Option<mpsc::Sender<Box<dyn CatalogTask>>>,
    thread: Option<JoinHandle<()>>,
}

impl CatalogHandle {
    pub fn open(store: Arc<dyn Store>) -> Result<Self, JournalError> {
        let shared = Arc::new(SharedCatalog::open(store)?);
        let (queue, queued) = mpsc::channel();
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("catalog".to_owned())
            .spawn(move || writer::run(&writing, &queued))
            .map_err(|error| JournalError::CatalogWriter { why: error.to_string() })?;
        let inner =
            Inner { shared, first_error: FirstError::default(), queue: Some(queue), thread: Some(thread) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Reads the catalog after catching up with the store. `look` runs under a lock and must not call
    /// the handle.
    pub fn read<T>(&self, look: impl FnOnce(&Catalog) -> T) -> Result<T, JournalError> {
        self.inner.shared.catch_up()?;
        Ok(self.cached(|catalog, _| look(catalog)))
    }

    /// Reads the catalog as this process knows it, and its version, without asking the store. `look`
    /// must not call the handle.
    pub fn cached<T>(&self, look: impl FnOnce(&Catalog, Version) -> T) -> T {
        let known = self.inner.shared.known();
        look(&known.catalog, known.version)
    }

    /// Appends the events that `decide` returns, and returns them once they are on disk. `decide` runs on the
    /// writer thread, again after each conflict, and must not call the handle. On an error nothing was
    /// written, except as described at [`Store::append`].
    pub fn change<E: Send + 'static>(
        &self,
        decide: impl FnMut(&Catalog) -> Result<Vec<CatalogEvent>, E> + Send + 'static,
    ) -> Result<Result<Vec<CatalogEvent>, E>, JournalError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(Box::new(CatalogChange { decide, decided: None, sender }));
        receiver.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Writes a fact without waiting. The next [`CatalogHandle::flush`] reports an error.
    pub fn note(&self, event: CatalogEvent) {
        let first_error = self.inner.first_error.clone();
        self.send(Box::new(CatalogNote { event, first_error }));
    }

    /// Waits until every note is on the disk, or returns the first error since the last flush.
    pub fn flush(&self) -> Result<(), JournalError> {
        // An empty change, queued behind all notes.
        let nothing = |_: &Catalog| Ok::<_, std::convert::Infallible>(Vec::new());
        let flushed = self.change(nothing);
        match self.inner.first_error.take() {
            Some(first_error) => Err(first_error),
            None => flushed.map(|_| ()),
        }
    }

    pub fn records_after(&self, version: Version) -> Result<Vec<(Version, CatalogRecord)>, JournalError> {
        journal::records(&*self.inner.shared.store, version)
    }

    fn send(&self, task: Box<dyn CatalogTask>) {
        let refused = match &self.inner.queue {
            Some(queue) => queue.send(task).err().map(|refused| refused.0),
            None => Some(task),
        };
        if let Some(task) = refused {
            task.answer(Err(ended()));
        }
    }
}

/// Only a panic ends the writer thread.
fn ended() -> JournalError {
    JournalError::CatalogWriter { why: "its writer thread has ended".to_owned() }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        // `decide` may hold the last handle, and a thread cannot join itself.
        if thread.thread().id() != std::thread::current().id() {
            // A panic of the thread has been printed already.
            drop(thread.join());
        }
    }
}
