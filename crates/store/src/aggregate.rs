//! Aggregates: their names, the versions of their journals, and the claims that allow a handle to write to them.
//!
//! A family is a word of the caller's choice: the store knows neither jobs nor breakers.

use std::fmt;
use std::time::SystemTime;

use crate::StoreError;

/// Names the owner of a journal, such as a job or a breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregateId {
    family: String,
    id: String,
}

impl AggregateId {
    /// The aggregate `id` of a family, such as `job`. Neither may be empty or contain a NUL character.
    pub fn new(family: impl Into<String>, id: impl Into<String>) -> Result<Self, InvalidAggregateId> {
        let (family, id) = (family.into(), id.into());
        let names = |part: &str| !part.is_empty() && !part.contains('\0');
        if !names(&family) || !names(&id) {
            return Err(InvalidAggregateId { family, id });
        }
        Ok(Self { family, id })
    }

    pub fn family(&self) -> &str {
        &self.family
    }

    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for AggregateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.id)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{family}` and `{id}` do not name an aggregate: one is empty or contains a NUL character")]
pub struct InvalidAggregateId {
    pub family: String,
    pub id: String,
}

/// The number of records appended to a journal. The version of a record is the version of the journal once it
/// is appended; the first record has version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    pub const EMPTY: Self = Self(0);

    pub fn after(self, records: usize) -> Self {
        Self(self.0.saturating_add(u64::try_from(records).unwrap_or(u64::MAX)))
    }

    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a claim. Every claim has a higher epoch than all earlier claims of the store, whatever the
/// aggregate, so an epoch is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of an aggregate that was never claimed. Any process may append to it.
    pub const UNCLAIMED: Self = Self(0);

    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The right to write to an aggregate. It lasts until it is released or its owner is dead, and never expires, so
/// it needs no heartbeats and no synchronized clocks. Dropping it releases nothing; closing the store handle does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub aggregate: AggregateId,
    pub epoch: Epoch,
    /// The version of the journal when it was claimed.
    pub version: Version,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub pid: u32,
    pub host: String,
    /// When the owner opened the store.
    pub since: SystemTime,
}

impl Owner {
    /// The current process, as an owner since now.
    pub(crate) fn current() -> Self {
        Self {
            pid: std::process::id(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            since: SystemTime::now(),
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    #[error("{aggregate} is owned by process {} on {}", owner.pid, owner.host)]
    OwnedBy { aggregate: AggregateId, owner: Owner },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClaimError {
    /// A word for this error, the same in every release.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OwnedBy { .. } => "owned",
            Self::Store(error) => error.code(),
        }
    }
}
