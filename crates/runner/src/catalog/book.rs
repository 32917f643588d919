//! A handle on the catalog of a store.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use undaunted_engine::catalog::{Catalog, CatalogEvent, CatalogRecord};
use undaunted_store::{Store, Version};

use super::shared::Shared;
use super::wish::{Change, Note, Trouble, Wish};
use super::{pages, writer};
use crate::journal::JournalError;

/// The catalog of a store, to be read and written. Copies are handles on the same one.
#[derive(Clone)]
pub struct Book {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    trouble: Trouble,
    /// There until the last handle is dropped; without it the thread ends.
    queue: Option<mpsc::Sender<Box<dyn Wish>>>,
    thread: Option<JoinHandle<()>>,
}

impl Book {
    /// Reads the catalog, and starts the one thread that writes it.
    pub fn open(store: Arc<dyn Store>) -> Result<Self, JournalError> {
        let shared = Arc::new(Shared::open(store)?);
        let (queue, queued) = mpsc::channel();
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("catalog".to_owned())
            .spawn(move || writer::run(&writing, &queued))
            .map_err(|error| JournalError::CatalogWriter {
                why: error.to_string(),
            })?;
        let inner = Inner {
            shared,
            trouble: Trouble::default(),
            queue: Some(queue),
            thread: Some(thread),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Looks at the catalog as it is now, whoever has written it. Whoever looks does not call the
    /// book meanwhile.
    pub fn read<T>(&self, look: impl FnOnce(&Catalog) -> T) -> Result<T, JournalError> {
        self.inner.shared.catch_up()?;
        Ok(self.known(|catalog, _| look(catalog)))
    }

    /// Looks at the catalog as it is known, without asking the store, and at how many records that
    /// is. Whoever looks does not call the book meanwhile.
    pub fn known<T>(&self, look: impl FnOnce(&Catalog, Version) -> T) -> T {
        let known = self.inner.shared.known();
        look(&known.catalog, known.version)
    }

    /// Decides and writes: what was decided, once it is on the disk, or why nothing is written. It
    /// is decided again if somebody else was faster. The deciding happens on the thread that writes
    /// and does not call the book.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written; then nothing of it was, except as
    /// [`Store::append`] says.
    pub fn change<E: Send + 'static>(
        &self,
        decide: impl FnMut(&Catalog) -> Result<Vec<CatalogEvent>, E> + Send + 'static,
    ) -> Result<Result<Vec<CatalogEvent>, E>, JournalError> {
        let (tell, told) = mpsc::sync_channel(1);
        self.wish(Box::new(Change {
            decide,
            decided: None,
            tell,
        }));
        told.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Has a fact written, and does not wait. What goes wrong is told by the next [`Book::flush`].
    pub fn note(&self, event: CatalogEvent) {
        let trouble = self.inner.trouble.clone();
        self.wish(Box::new(Note { event, trouble }));
    }

    /// Waits until all that was noted is on the disk.
    ///
    /// # Errors
    ///
    /// When something that was noted since the last time is not: the first trouble.
    pub fn flush(&self) -> Result<(), JournalError> {
        // A change of nothing, behind all that was noted before.
        let nothing = |_: &Catalog| Ok::<_, std::convert::Infallible>(Vec::new());
        let flushed = self.change(nothing);
        match self.inner.trouble.take() {
            Some(trouble) => Err(trouble),
            None => flushed.map(|_| ()),
        }
    }

    /// The records after a version, oldest first, for those who follow them.
    pub fn records_after(
        &self,
        version: Version,
    ) -> Result<Vec<(Version, CatalogRecord)>, JournalError> {
        pages::records(&*self.inner.shared.store, version)
    }

    fn wish(&self, wish: Box<dyn Wish>) {
        let refused = match &self.inner.queue {
            Some(queue) => queue.send(wish).err().map(|refused| refused.0),
            None => Some(wish),
        };
        if let Some(wish) = refused {
            wish.answer(Err(ended()));
        }
    }
}

/// The thread is gone, which only a panic does to it.
fn ended() -> JournalError {
    JournalError::CatalogWriter {
        why: "its writing thread has ended".to_owned(),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        // What somebody decides there may hold the last handle; a thread cannot wait for itself.
        if thread.thread().id() != std::thread::current().id() {
            // Its panic was shown already.
            drop(thread.join());
        }
    }
}
