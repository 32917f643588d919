//! What may be asked of whoever runs a job.

use undaunted_engine::input::Input;
use undaunted_store::{Store, StoreError};

use crate::journal::{JournalError, aggregate};

/// Something that may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// To end the job.
    Cancel,
    /// To start nothing new.
    Pause,
    /// To go on.
    Unpause,
}

impl Request {
    const ALL: [Self; 3] = [Self::Cancel, Self::Pause, Self::Unpause];

    const fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Unpause => "unpause",
        }
    }

    /// What the job is told.
    #[must_use]
    pub const fn input(self) -> Input {
        match self {
            Self::Cancel => Input::Cancel,
            Self::Pause => Input::Pause,
            Self::Unpause => Input::Unpause,
        }
    }

    /// The request these bytes are. One that a later release makes is none of ours.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|request| request.word().as_bytes() == bytes)
    }
}

/// Asks something of the owner of a job. On the disk when it returns; the owner looks several times
/// a second.
///
/// # Errors
///
/// When there is no such job, or the store cannot be written.
pub fn ask(store: &dyn Store, job: &str, request: Request) -> Result<(), JournalError> {
    let aggregate = aggregate(job)?;
    match store.request(&aggregate, request.word().into()) {
        Ok(_) => Ok(()),
        Err(StoreError::NotFound { .. }) => Err(JournalError::NotFound {
            job: job.to_owned(),
        }),
        Err(error) => Err(error.into()),
    }
}
