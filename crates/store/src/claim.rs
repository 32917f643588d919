//! Claims: which handle may write to an aggregate.
//!
//! A claim lasts until it is released or its owner is dead. It never expires, so it needs no heartbeats and
//! no synchronized clocks.

use std::time::SystemTime;

use crate::aggregate::AggregateId;
use crate::error::StoreError;
use crate::version::{Epoch, Version};

/// The right to write to an aggregate. Dropping it releases nothing; closing the store handle does.
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
