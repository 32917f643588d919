//! The thread that writes the catalog: everything that was asked for while it wrote the last time is
//! written together, in one append.

use std::sync::mpsc::Receiver;

use undaunted_store::{AppendError, StoreError};

use super::pages;
use super::shared::Shared;
use super::wish::Wish;
use crate::journal::JournalError;

/// The most that is written together, so that nobody waits for a queue without end.
const MOST: usize = 4096;

/// Writes until nobody can ask any more, and everything that was asked for.
pub(super) fn run(shared: &Shared, queue: &Receiver<Box<dyn Wish>>) {
    while let Ok(first) = queue.recv() {
        let mut wishes = vec![first];
        wishes.extend(queue.try_iter().take(MOST.saturating_sub(1)));
        fulfil(shared, wishes);
    }
}

fn fulfil(shared: &Shared, mut wishes: Vec<Box<dyn Wish>>) {
    let written = write(shared, &mut wishes);
    // One that is too large is refused alone.
    if wishes.len() > 1 && matches!(&written, Err(error) if is_too_large(error)) {
        for wish in wishes {
            fulfil(shared, vec![wish]);
        }
        return;
    }
    for wish in wishes {
        wish.answer(written.clone());
    }
}

const fn is_too_large(error: &JournalError) -> bool {
    let JournalError::Append(AppendError::Store(error)) = error else {
        return false;
    };
    matches!(error, StoreError::TooLarge { .. })
}

fn write(shared: &Shared, wishes: &mut [Box<dyn Wish>]) -> Result<(), JournalError> {
    loop {
        // Also for those who will want nothing written: that too is decided on what is there now.
        shared.catch_up()?;
        let (version, records) = shared.decide(wishes);
        if records.is_empty() {
            return Ok(());
        }
        let append = pages::append(version, &records)?;
        match shared.store.append(vec![append]) {
            // Unless there is something new to decide on, it would go on like this for ever.
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
