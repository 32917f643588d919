//! A change that waits for its transaction, and the one who waits for the change.

use super::ledger::{Ledger, Outcome};
use crate::error::StoreError;

/// A change of any kind. It may be run more than once, if a transaction was undone, and is finished
/// once.
pub(super) trait Task: Send {
    /// Makes the change inside a transaction. An error is the database's; a refusal is kept for
    /// [`Task::finish`].
    fn run(&mut self, ledger: &mut Ledger<'_>) -> rusqlite::Result<()>;

    /// Whether it has to be on the disk when it is finished. Otherwise it may be lost if the machine
    /// dies, and only then.
    fn is_lasting(&self) -> bool;

    /// Tells what came of it: that of the last run, or why that does not count.
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

/// A change made of two functions.
pub(super) struct Change<T, E, W, D> {
    work: W,
    done: D,
    is_lasting: bool,
    outcome: Option<Result<T, E>>,
}

impl<T, E, W, D> Change<T, E, W, D>
where
    W: FnMut(&mut Ledger<'_>) -> Outcome<T, E>,
    D: FnOnce(Result<T, E>),
{
    /// Does `work` and tells `done`.
    pub(super) fn new(work: W, done: D) -> Self {
        Self {
            work,
            done,
            is_lasting: true,
            outcome: None,
        }
    }

    /// The same for what nobody misses after the death of the machine.
    pub(super) fn fleeting(work: W, done: D) -> Self {
        Self {
            is_lasting: false,
            ..Self::new(work, done)
        }
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

    fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.outcome) {
            // A refusal is true whether or not the others of its group were committed.
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(StoreError::closed().into()),
            (Err(error), _) => Err(error.into()),
        };
        (self.done)(outcome);
    }
}
