//! Appends, and why they are refused.
//!
//! Every store calls [`check`] to decide whether an append is accepted.

use crate::{AggregateId, Epoch, Head, RequestId, StoreError, Version};

/// The size limit of a record in bytes. Larger data belongs in a file.
pub const LARGEST_RECORD: usize = 64 << 20;

/// The condition of an append: the journal is still at `version`, and the claim with `epoch` is the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    pub version: Version,
    pub epoch: Epoch,
}

/// Records to append to one journal. A guarded append ([`Append::new`]) continues a journal that its writer
/// has read to the end. An unguarded one ([`Append::facts`]) adds to a journal that several processes share:
/// each appends what it has observed, in any order, and the state is the fold of all records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    pub aggregate: AggregateId,
    /// `None` for facts, which have no condition.
    pub guard: Option<Guard>,
    /// May be empty: then the append only checks its guard and takes requests.
    pub records: Vec<Vec<u8>>,
    /// Requests that these records act upon, deleted in the same commit.
    pub taken: Vec<RequestId>,
}

impl Append {
    pub fn new(aggregate: AggregateId, version: Version, epoch: Epoch, records: Vec<Vec<u8>>) -> Self {
        Self { guard: Some(Guard { version, epoch }), ..Self::facts(aggregate, records) }
    }

    /// Facts to add at the end of the journal, never refused for a version or an epoch. Not for an aggregate
    /// with an owner, whose next guarded append would conflict.
    pub fn facts(aggregate: AggregateId, records: Vec<Vec<u8>>) -> Self {
        Self { aggregate, guard: None, records, taken: vec![] }
    }

    pub fn taking(mut self, requests: impl IntoIterator<Item = RequestId>) -> Self {
        self.taken.extend(requests);
        self
    }

    /// The version of the journal after this append, if it is `found` before. For a guarded append `found` is
    /// the guard's version. For facts it is known only when they are stored, and reported by
    /// [`OnAppended`](crate::OnAppended).
    pub fn reaches(&self, found: Version) -> Version {
        found.after(self.records.len())
    }
}

/// Why an append was refused. Nothing of a refused append is stored.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    #[error("the journal of {aggregate} is at version {found}, not {expected}")]
    Conflict { aggregate: AggregateId, expected: Version, found: Version },
    /// Another handle has claimed the aggregate since.
    #[error("{aggregate} was claimed again in epoch {current}; epoch {held} can no longer write")]
    Fenced { aggregate: AggregateId, held: Epoch, current: Epoch },
    #[error("request {request} of {aggregate} does not exist or was already taken")]
    AlreadyTaken { aggregate: AggregateId, request: RequestId },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AppendError {
    /// A word for this error, the same in every release.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Fenced { .. } => "fenced",
            Self::AlreadyTaken { .. } => "already-taken",
            Self::Store(error) => error.code(),
        }
    }
}

/// Checks an append against the head of its journal. The epoch is checked before the version, because a
/// conflict tells the writer to try again, and a fenced writer must not.
pub(crate) fn check(append: &Append, found: Head) -> Result<(), AppendError> {
    if let Some(guard) = append.guard {
        fenced(&append.aggregate, guard.epoch, found)?;
        if guard.version != found.version {
            return Err(AppendError::Conflict {
                aggregate: append.aggregate.clone(),
                expected: guard.version,
                found: found.version,
            });
        }
    }
    match append.records.iter().find(|r| r.len() > LARGEST_RECORD) {
        None => Ok(()),
        Some(record) => Err(AppendError::Store(StoreError::TooLarge {
            aggregate: append.aggregate.clone(),
            bytes: record.len(),
            most: LARGEST_RECORD,
        })),
    }
}

pub(crate) fn fenced(aggregate: &AggregateId, held: Epoch, found: Head) -> Result<(), AppendError> {
    if held == found.epoch {
        return Ok(());
    }
    Err(AppendError::Fenced { aggregate: aggregate.clone(), held, current: found.epoch })
}
