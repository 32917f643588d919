//! A change for the writing thread, and the callback that gets its result.

use super::ledger::{Ledger, Outcome};
use crate::error::StoreError;

/// How soon and how safely a change has to be written, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Haste {
    /// No caller waits for it: it may wait a little for others to share its commit. It may be lost if
    /// the machine crashes.
    Fleeting,
    /// A caller waits for the commit, but not for the sync. It may be lost if the machine crashes.
    Prompt,
    /// It is on the disk when it is finished.
    Lasting,
}

/// A change of any kind. It may be run more than once, if a transaction was rolled back, and is finished
/// once.
pub(super) trait Task: Send {
    /// Makes the change inside a transaction. An error is the database's; a refusal is kept for
    /// [`Task::finish`].
    fn run(&mut self, ledger: &mut Ledger<'_>) -> rusqlite::Result<()>;

    fn haste(&self) -> Haste;

    /// Reports the result of the last run, or why that does not count.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

/// Runs `work` and passes its result to `done`.
pub(super) struct Change<T, E, W, D> {
    work: W,
    done: D,
    haste: Haste,
    outcome: Option<Result<T, E>>,
}

impl<T, E, W, D> Change<T, E, W, D>
where
    W: FnMut(&mut Ledger<'_>) -> Outcome<T, E>,
    D: FnOnce(Result<T, E>),
{
    pub(super) fn new(haste: Haste, work: W, done: D) -> Self {
        Self { work, done, haste, outcome: None }
    }
}

impl<T, E, W, D> Task for Change<T, E, W, D>
where
    T: Send,
    E: From<StoreError> + Send,
    W: FnMut(&mut Ledger<'_>) -> Outcome<T, E> + Send,
    D: FnOnce(Result<T, E>) + Send,
{
    fn run(&mut self, ledger: &mut Ledger<'_>) -> rusqlite::Result<()> {
        self.outcome = None;
        self.outcome = Some((self.work)(ledger)?);
        Ok(())
    }

    fn haste(&self) -> Haste {
        self.haste
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.outcome) {
            // A refusal stands whether or not the others of its group were committed.
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::closed().into()),
            (Err(error), _) => Err(error.into()),
        };
        (self.done)(outcome);
    }
}
