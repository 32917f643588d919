//! Who may write to an aggregate.
//!
//! A claim lasts until it is released or its owner is gone. It does not expire: there are no
//! heartbeats and no clocks to disagree about.

use std::time::SystemTime;

use crate::aggregate::AggregateId;
use crate::error::StoreError;
use crate::version::{Epoch, Version};

/// The right to write to an aggregate. It is plain data: dropping it releases nothing, closing the
/// store's handle does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub aggregate: AggregateId,
    /// What appends under this claim carry.
    pub epoch: Epoch,
    /// Where the journal was when it was claimed.
    pub version: Version,
}

/// Whose a claim is, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub pid: u32,
    /// The machine it runs on.
    pub host: String,
    /// When it opened the store.
    pub since: SystemTime,
}

impl Owner {
    /// This process, from now on.
    pub(crate) fn here() -> Self {
        Self {
            pid: std::process::id(),
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            since: SystemTime::now(),
        }
    }
}

/// Why an aggregate could not be claimed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// Its owner is alive.
    #[error("{aggregate} is owned by process {} on {}", owner.pid, owner.host)]
    OwnedBy {
        aggregate: AggregateId,
        owner: Owner,
    },
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClaimError {
    /// A word for this error that does not change.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OwnedBy { .. } => "owned",
            Self::Store(error) => error.code(),
        }
    }
}
