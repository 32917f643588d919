//! What may be asked of whoever runs a job.

use undaunted_store::{Store, StoreError};

use crate::journal::{JournalError, aggregate};

/// The request to end a job.
pub(crate) const CANCEL: &[u8] = b"cancel";

/// Asks the owner of a job to cancel it. On the disk when it returns; the owner looks several
/// times a second.
///
/// # Errors
///
/// When there is no such job, or the store cannot be written.
pub fn request_cancel(store: &dyn Store, job: &str) -> Result<(), JournalError> {
    let aggregate = aggregate(job)?;
    match store.request(&aggregate, CANCEL.to_vec()) {
        Ok(_) => Ok(()),
        Err(StoreError::NotFound { .. }) => Err(JournalError::NotFound {
            job: job.to_owned(),
        }),
        Err(error) => Err(error.into()),
    }
}
