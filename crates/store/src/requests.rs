//! Requests to the owner of an aggregate, and the questions with which an owner finds them.
//!
//! A request, such as to cancel or to pause a job, is stored when it is made and deleted by the append that
//! acts upon it ([`Append::taken`](crate::Append)), so it is acted upon exactly once, whichever process
//! crashes. An event loop asks its store one [`Question`] in every round and gets [`Findings`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::{AggregateId, StoreError, Version};

/// Rises with every request of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRequest {
    pub id: RequestId,
    /// The request, in the caller's encoding.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Journals of other owners that the event loop follows, each with the last version it has read.
    pub follows: BTreeMap<AggregateId, Version>,
    /// Aggregates of other owners that the event loop will claim when their owners are gone.
    pub awaits: BTreeSet<AggregateId>,
    /// The pulse of the last findings. If the store has not changed since, the answer has no requests and
    /// no records.
    pub since: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Like [`Store::pulse`](crate::Store::pulse), but comparable only with the pulse of other findings. The
    /// findings include everything written before it.
    pub pulse: u64,
    /// Open requests to the aggregates that are claimed through this handle, oldest first. An error stands
    /// for all requests of its aggregate.
    pub requests: BTreeMap<AggregateId, Result<Vec<StoreRequest>, StoreError>>,
    /// New records of followed journals, as [`Store::read`](crate::Store::read) returns them.
    pub records: BTreeMap<AggregateId, Result<Vec<NumberedRecord>, StoreError>>,
    pub unowned: BTreeSet<AggregateId>,
}

pub type NumberedRecord = (Version, Vec<u8>);

/// Called once with the findings. Like [`OnAppended`](crate::OnAppended), it must return quickly and must not
/// call the store.
pub type OnFindings = Box<dyn FnOnce(Result<Findings, StoreError>) + Send>;
