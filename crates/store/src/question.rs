//! What an event loop asks its store once a round, and what it finds out by that.

use std::collections::{BTreeMap, BTreeSet};

use crate::aggregate::AggregateId;
use crate::error::StoreError;
use crate::request::Request;
use crate::version::Version;

/// Everything an event loop wants to know of its store, in one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Journals of others that the loop follows, and the last record of each that it knows.
    pub follows: BTreeMap<AggregateId, Version>,
    /// Aggregates with other owners: the loop waits for one of them to have none.
    pub awaits: BTreeSet<AggregateId>,
    /// The pulse of the findings that this loop got last. If nothing was written since, there is neither
    /// a request nor a record to be told.
    pub since: Option<u64>,
}

/// What a store found for a [`Question`].
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// As [`Store::pulse`](crate::Store::pulse), but to be compared with that of other findings only.
    /// Everything written before is part of these findings; something written later may be.
    pub pulse: u64,
    /// What was asked of the aggregates that are claimed through this handle and is not yet taken, oldest
    /// first. A request that cannot be read comes in the place of all of its aggregate.
    pub requests: BTreeMap<AggregateId, Result<Vec<Request>, StoreError>>,
    /// Of followed journals that have more: the records as [`Store::read`](crate::Store::read) gives them.
    pub records: BTreeMap<AggregateId, Result<Vec<Numbered>, StoreError>>,
    /// The awaited aggregates that have no living owner.
    pub unowned: BTreeSet<AggregateId>,
}

/// A record, and its version.
pub type Numbered = (Version, Vec<u8>);

/// Told what a store has found, once. As [`Done`](crate::Done), it hands the news on and returns.
pub type OnFindings = Box<dyn FnOnce(Result<Findings, StoreError>) + Send>;
