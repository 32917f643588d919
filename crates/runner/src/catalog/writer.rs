//! The thread that writes the catalog. Tasks that arrive during an append share the next one.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use undaunted_engine::catalog::{Catalog, CatalogEvent};
use undaunted_store::{AppendError, StoreError};

use super::{SharedCatalog, journal};
use crate::{JournalError, locked};

/// The most tasks in one append, which bounds how long the first of them waits.
const MOST: usize = 4096;

/// The time between two attempts to write during an outage.
const AGAIN: Duration = Duration::from_secs(1);

/// Returns when all senders are dropped and everything queued is written.
pub(super) fn run(shared: &SharedCatalog, queue: &Receiver<Box<dyn CatalogTask>>) {
    let mut tasks = Vec::new();
    loop {
        let next = if tasks.is_empty() {
            queue.recv().map_err(RecvTimeoutError::from)
        } else {
            queue.recv_timeout(AGAIN)
        };
        match next {
            Ok(task) => tasks.push(task),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        tasks.extend(queue.try_iter().take(MOST.saturating_sub(1)));
        tasks = commit(shared, tasks);
    }
    // Flows that are missing from the catalog are added by the next process.
    drop(commit(shared, tasks));
}

/// Returns the tasks that wait for the end of an outage.
fn commit(shared: &SharedCatalog, mut tasks: Vec<Box<dyn CatalogTask>>) -> Vec<Box<dyn CatalogTask>> {
    let written = write(shared, &mut tasks);
    // Each task is retried alone, so that only the one that is too large is refused.
    let is_too_large =
        matches!(written, Err(JournalError::Append(AppendError::Store(StoreError::TooLarge { .. }))));
    if tasks.len() > 1 && is_too_large {
        let mut waiting = Vec::new();
        for task in tasks {
            // Notes stay in order.
            if task.waits() && !waiting.is_empty() {
                waiting.push(task);
            } else {
                waiting.extend(commit(shared, vec![task]));
            }
        }
        return waiting;
    }
    let is_outage = written.as_ref().is_err_and(|error| error.outage().is_some());
    let (waiting, answered): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| is_outage && task.waits());
    for task in answered {
        task.answer(written.clone());
    }
    waiting
}

fn write(shared: &SharedCatalog, tasks: &mut [Box<dyn CatalogTask>]) -> Result<(), JournalError> {
    loop {
        // Also for a task that writes nothing: it must be decided on the current catalog.
        shared.catch_up()?;
        let (version, records) = shared.decide(tasks);
        if records.is_empty() {
            return Ok(());
        }
        let append = journal::append(version, &records)?;
        match shared.store.append(vec![append]) {
            // Retried only if there are new records; otherwise the conflict would repeat for ever.
            Err(error) if journal::is_conflict(&error) && shared.look()? > version => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                shared.apply((1..).map(|number| version.after(number)).zip(records));
                return Ok(());
            }
        }
    }
}

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
