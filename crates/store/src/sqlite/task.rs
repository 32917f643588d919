//! Tasks for the writer thread: a change, and the callback that gets its result.

use super::transaction::{ChangeResult, StoreTransaction};
use crate::error::StoreError;

/// How soon and how durably a change must be written, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Durability {
    /// No caller waits for the change, so it may wait briefly to share a commit with others. A crash of the
    /// machine may lose it.
    Background,
    /// A caller waits for the commit but not for a sync. A crash of the machine may lose the change.
    Unsynced,
    /// The change is on the disk when it is finished.
    Synced,
}

/// A change of any type. After a rollback it may be run again; it is finished once.
pub(super) trait WriteTask: Send {
    /// Makes the change inside a transaction. An error is a database error; a refusal is kept for
    /// [`WriteTask::finish`].
    fn run(&mut self, transaction: &mut StoreTransaction<'_>) -> rusqlite::Result<()>;

    fn durability(&self) -> Durability;

    /// Reports the result of the last run, or why it was not committed.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

/// Runs `work` and passes its result to `done`.
pub(super) struct ClosureTask<T, E, W, D> {
    work: W,
    done: D,
    durability: Durability,
    outcome: Option<Result<T, E>>,
}

impl<T, E, W, D> ClosureTask<T, E, W, D>
where
    W: FnMut(&mut StoreTransaction<'_>) -> ChangeResult<T, E>,
    D: FnOnce(Result<T, E>),
{
    pub(super) fn new(durability: Durability, work: W, done: D) -> Self {
        Self { work, done, durability, outcome: None }
    }
}

impl<T, E, W, D> WriteTask for ClosureTask<T, E, W, D>
where
    T: Send,
    E: From<StoreError> + Send,
    W: FnMut(&mut StoreTransaction<'_>) -> ChangeResult<T, E> + Send,
    D: FnOnce(Result<T, E>) + Send,
{
    fn run(&mut self, transaction: &mut StoreTransaction<'_>) -> rusqlite::Result<()> {
        self.outcome = None;
        self.outcome = Some((self.work)(transaction)?);
        Ok(())
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.outcome) {
            // A refusal is valid even if it was the only result of the transaction.
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::closed().into()),
            (Err(error), _) => Err(error.into()),
        };
        (self.done)(outcome);
    }
}
