//! What is appended, and why it is refused.
//!
//! [`check`] is the one place that decides whether an append may stand; every store asks it.

use crate::aggregate::AggregateId;
use crate::error::StoreError;
use crate::request::RequestId;
use crate::store::Head;
use crate::version::{Epoch, Version};

/// The most bytes of one record. A record is a fact; what is larger belongs in a file.
pub const LARGEST_RECORD: usize = 64 << 20;

/// The condition of an append: the journal is where the caller believes it to be, and the caller's
/// claim still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// How many records the journal must have before.
    pub version: Version,
    /// The claim under which the append is written.
    pub epoch: Epoch,
}

/// Records for one aggregate.
///
/// A guarded append ([`Append::new`]) continues a journal that its writer has read to the end. An
/// unguarded one ([`Append::facts`]) adds to a journal that several processes share: each appends what
/// it has seen, in whatever order they arrive, and the meaning is the fold of all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    pub aggregate: AggregateId,
    /// What must hold for the append to stand; `None` for facts, which stand in any case.
    pub guard: Option<Guard>,
    /// What is added, in order. May be empty: then the append only checks and takes requests.
    pub records: Vec<Vec<u8>>,
    /// Requests that these records act upon. They go as the records come, or neither happens.
    pub taken: Vec<RequestId>,
}

impl Append {
    /// Records to add after `expected`, under the claim `epoch`.
    pub fn new(
        aggregate: AggregateId,
        expected: Version,
        epoch: Epoch,
        records: Vec<Vec<u8>>,
    ) -> Self {
        let version = expected;
        Self {
            guard: Some(Guard { version, epoch }),
            ..Self::facts(aggregate, records)
        }
    }

    /// Facts to add wherever the journal ends: never refused for a version or an epoch. Not for an
    /// aggregate that has an owner, whose next guarded append would be a conflict.
    pub fn facts(aggregate: AggregateId, records: Vec<Vec<u8>>) -> Self {
        Self {
            aggregate,
            guard: None,
            records,
            taken: vec![],
        }
    }

    /// The same, taking these requests.
    pub fn taking(mut self, requests: impl IntoIterator<Item = RequestId>) -> Self {
        self.taken.extend(requests);
        self
    }

    /// How many records the journal has afterwards, if it has `found` before. For a guarded append
    /// `found` is the guard's version, or the append is refused; where facts land is known once they
    /// are stored, and is what [`Done`](crate::Done) tells.
    pub fn reaches(&self, found: Version) -> Version {
        found.after(self.records.len())
    }
}

/// Why an append was refused; then nothing of it was stored.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The journal is not where the caller believed it to be.
    #[error("the journal of {aggregate} is at version {found}, not {expected}")]
    Conflict {
        aggregate: AggregateId,
        /// Where the caller believed it to be.
        expected: Version,
        found: Version,
    },
    /// Somebody else has claimed the aggregate since.
    #[error("{aggregate} was claimed in epoch {current}, so that epoch {held} may not write")]
    Fenced {
        aggregate: AggregateId,
        /// The caller's epoch.
        held: Epoch,
        /// The one that counts.
        current: Epoch,
    },
    /// A request was taken before.
    #[error("request {request} of {aggregate} is not there to be taken")]
    AlreadyTaken {
        aggregate: AggregateId,
        request: RequestId,
    },
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AppendError {
    /// A word for this error that does not change.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Fenced { .. } => "fenced",
            Self::AlreadyTaken { .. } => "already-taken",
            Self::Store(error) => error.code(),
        }
    }
}

/// Whether an append may stand, given where its journal is now. A stale owner is told so first: a
/// conflict is for those who may try again.
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

/// Whether this epoch may write to an aggregate.
pub(crate) fn fenced(aggregate: &AggregateId, held: Epoch, found: Head) -> Result<(), AppendError> {
    if held == found.epoch {
        return Ok(());
    }
    Err(AppendError::Fenced {
        aggregate: aggregate.clone(),
        held,
        current: found.epoch,
    })
}
