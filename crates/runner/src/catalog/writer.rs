//! The thread that writes the catalog. Wishes that arrive during an append share the next one.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use undaunted_store::{AppendError, StoreError};

use super::pages;
use super::shared::Shared;
use super::task::CatalogTask;
use crate::journal::JournalError;

/// The most wishes in one append, which bounds how long the first of them waits.
const MOST: usize = 4096;

/// The time between two tries to write during an outage.
const AGAIN: Duration = Duration::from_secs(1);

/// Returns when all senders are dropped and everything queued is written.
pub(super) fn run(shared: &Shared, queue: &Receiver<Box<dyn CatalogTask>>) {
    let mut wishes = Vec::new();
    loop {
        let next = if wishes.is_empty() {
            queue.recv().map_err(RecvTimeoutError::from)
        } else {
            queue.recv_timeout(AGAIN)
        };
        match next {
            Ok(wish) => wishes.push(wish),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        wishes.extend(queue.try_iter().take(MOST.saturating_sub(1)));
        wishes = fulfil(shared, wishes);
    }
    // Flows that are missing from the catalog are added by the next process.
    drop(fulfil(shared, wishes));
}

/// Returns the wishes that wait for the end of an outage.
fn fulfil(shared: &Shared, mut wishes: Vec<Box<dyn CatalogTask>>) -> Vec<Box<dyn CatalogTask>> {
    let written = write(shared, &mut wishes);
    // Retried one by one, so that only the one that is too large is refused.
    let is_too_large =
        matches!(written, Err(JournalError::Append(AppendError::Store(StoreError::TooLarge { .. }))));
    if wishes.len() > 1 && is_too_large {
        let mut waiting = Vec::new();
        for wish in wishes {
            // Notes stay in order.
            if wish.waits() && !waiting.is_empty() {
                waiting.push(wish);
            } else {
                waiting.extend(fulfil(shared, vec![wish]));
            }
        }
        return waiting;
    }
    let is_outage = written.as_ref().is_err_and(|error| error.outage().is_some());
    let (waiting, answered): (Vec<_>, Vec<_>) =
        wishes.into_iter().partition(|wish| is_outage && wish.waits());
    for wish in answered {
        wish.answer(written.clone());
    }
    waiting
}

fn write(shared: &Shared, wishes: &mut [Box<dyn CatalogTask>]) -> Result<(), JournalError> {
    loop {
        // Also for a wish that will write nothing: it too is decided on the current catalog.
        shared.catch_up()?;
        let (version, records) = shared.decide(wishes);
        if records.is_empty() {
            return Ok(());
        }
        let append = pages::append(version, &records)?;
        match shared.store.append(vec![append]) {
            // Retried only if there are new records; otherwise the conflict would repeat for ever.
            Err(error) if pages::was_overtaken(&error) && shared.look()? > version => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let numbers = (1..).map(|number| version.after(number));
                shared.learn(numbers.zip(records));
                return Ok(());
            }
        }
    }
}
