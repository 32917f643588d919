//! The catalog as one process knows it: one state and one writer thread, shared by all handles.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use std::thread::JoinHandle;

use undaunted_engine::catalog::{Catalog, CatalogEvent, CatalogRecord, FlowEntry, StepHealth};
use undaunted_store::{Store, Version};

use super::writer::{self, CatalogChange, CatalogNote, FirstError};
use super::{CatalogTask, journal};
use crate::{Clock, JournalError};

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

pub(super) struct SharedCatalog {
    pub(super) store: Arc<dyn Store>,
    clock: Clock,
    known: RwLock<CatalogAtVersion>,
}

/// The catalog at a version that is on disk.
#[derive(Default)]
pub(super) struct CatalogAtVersion {
    pub(super) catalog: Catalog,
    pub(super) version: Version,
    /// The store's pulse before records were last read. While it is the same, so is the catalog.
    pulse: Option<u64>,
}

impl SharedCatalog {
    pub(super) fn open(store: Arc<dyn Store>) -> Result<Self, JournalError> {
        let mut known = CatalogAtVersion { pulse: Some(store.pulse()?), ..CatalogAtVersion::default() };
        journal::follow(&*store, Version::EMPTY, |version, record| {
            known.apply(version, &record);
        })?;
        Ok(Self { store, clock: Clock::set(), known: RwLock::new(known) })
    }

    pub(super) fn known(&self) -> RwLockReadGuard<'_, CatalogAtVersion> {
        // Unwinding drops a `Draft`, which undoes its changes, so a panic leaves no change half done.
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, CatalogAtVersion> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads new records, unless the pulse says that there are none.
    pub(super) fn catch_up(&self) -> Result<(), JournalError> {
        let pulse = self.store.pulse()?;
        if self.known().pulse == Some(pulse) {
            return Ok(());
        }
        self.look()?;
        // The earlier pulse, so that records written meanwhile are found the next time.
        self.change().pulse = Some(pulse);
        Ok(())
    }

    /// Reads new records and returns the version reached.
    pub(super) fn look(&self) -> Result<Version, JournalError> {
        let version = self.known().version;
        let head = self.store.head(&journal::aggregate()?)?.unwrap_or_default();
        if head.version > version {
            let records = journal::records(&*self.store, version)?;
            self.apply(records);
        }
        Ok(self.known().version)
    }

    /// Applies stored records. Two threads may have read the same ones.
    pub(super) fn apply(&self, records: impl IntoIterator<Item = (Version, CatalogRecord)>) {
        let mut known = self.change();
        for (version, record) in records {
            known.apply(version, &record);
        }
    }

    /// Decides all tasks, each on the result of those before it. Returns the version they are based
    /// on and the records to append; readers do not see these yet.
    pub(super) fn decide(&self, tasks: &mut [Box<dyn CatalogTask>]) -> (Version, Vec<CatalogRecord>) {
        let at = self.clock.now();
        let mut known = self.change();
        let mut records = Vec::new();
        let version = known.version;
        let mut draft = Draft::of(&mut known.catalog);
        for task in tasks {
            for event in task.decide(draft.catalog()) {
                let record = CatalogRecord { at, event };
                draft.add(&record);
                records.push(record);
            }
        }
        (version, records)
    }
}

impl CatalogAtVersion {
    fn apply(&mut self, version: Version, record: &CatalogRecord) {
        if version == self.version.next() {
            self.catalog.apply(record);
            self.version = version;
        }
    }
}

/// A catalog with changes that are not committed yet. They are made in place, since copying a catalog of a hundred
/// thousand flows would be a waste, and undone on drop: readers see only what is on the disk.
pub(super) struct Draft<'a> {
    catalog: &'a mut Catalog,
    undo: Vec<UndoEntry>,
}

enum UndoEntry {
    Step { id: String, definition: Option<Arc<str>>, health: Option<StepHealth> },
    Flow { id: String, entry: Option<FlowEntry> },
}

impl<'a> Draft<'a> {
    pub(super) const fn of(catalog: &'a mut Catalog) -> Self {
        Self { catalog, undo: Vec::new() }
    }

    pub(super) const fn catalog(&self) -> &Catalog {
        self.catalog
    }

    pub(super) fn add(&mut self, record: &CatalogRecord) {
        self.undo.push(UndoEntry::of(self.catalog, &record.event));
        self.catalog.apply(record);
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        for entry in self.undo.drain(..).rev() {
            entry.undo(self.catalog);
        }
    }
}

impl UndoEntry {
    fn of(catalog: &Catalog, event: &CatalogEvent) -> Self {
        match event {
            CatalogEvent::StepRegistered { id, .. }
            | CatalogEvent::StepUpdated { id, .. }
            | CatalogEvent::StepUnregistered { id }
            | CatalogEvent::StepHealthChanged { id, .. } => Self::Step {
                id: id.clone(),
                definition: catalog.steps.get(id).cloned(),
                health: catalog.health.get(id).cloned(),
            },
            CatalogEvent::FlowActivated { flow, .. }
            | CatalogEvent::FlowDeactivated { flow, .. }
            | CatalogEvent::FlowArchiving { flow }
            | CatalogEvent::FlowArchived { flow, .. }
            | CatalogEvent::FlowRemoved { flow } => {
                Self::Flow { id: flow.clone(), entry: catalog.flows.get(flow.as_str()).cloned() }
            }
        }
    }

    fn undo(self, catalog: &mut Catalog) {
        match self {
            Self::Step { id, definition, health } => {
                match health {
                    Some(health) => catalog.health.insert(id.clone(), health),
                    None => catalog.health.remove(&id),
                };
                match definition {
                    Some(definition) => catalog.steps.insert(id, definition),
                    None => catalog.steps.remove(&id),
                };
            }
            Self::Flow { id, entry } => {
                match entry {
                    Some(entry) => catalog.flows.insert(id.into(), entry),
                    None => catalog.flows.remove(id.as_str()),
                };
            }
        }
    }
}
