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
    /// To make its pool larger by so many retries.
    TopUp(u32),
}

impl Request {
    fn words(self) -> String {
        match self {
            Self::Cancel => "cancel".to_owned(),
            Self::Pause => "pause".to_owned(),
            Self::Unpause => "unpause".to_owned(),
            Self::TopUp(retries) => format!("top-up {retries}"),
        }
    }

    /// What the job is told.
    #[must_use]
    pub const fn input(self) -> Input {
        match self {
            Self::Cancel => Input::Cancel,
            Self::Pause => Input::Pause,
            Self::Unpause => Input::Unpause,
            Self::TopUp(retries) => Input::TopUp { retries },
        }
    }

    /// The request these bytes are. One that a later release makes is none of ours.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        match std::str::from_utf8(bytes).ok()? {
            "cancel" => Some(Self::Cancel),
            "pause" => Some(Self::Pause),
            "unpause" => Some(Self::Unpause),
            words => {
                let retries = words.strip_prefix("top-up ")?;
                retries.parse().ok().map(Self::TopUp)
            }
        }
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
    match store.request(&aggregate, request.words().into()) {
        Ok(_) => Ok(()),
        Err(StoreError::NotFound { .. }) => Err(JournalError::NotFound {
            job: job.to_owned(),
        }),
        Err(error) => Err(error.into()),
    }
}
