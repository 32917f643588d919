//! What an event loop asks its store once a round, and the answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::aggregate::AggregateId;
use crate::error::StoreError;
use crate::request::StoreRequest;
use crate::version::Version;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Journals of other owners that the loop follows, and the last record of each that it has read.
    pub follows: BTreeMap<AggregateId, Version>,
    /// Aggregates with other owners, to be claimed by the loop when their owners are gone.
    pub awaits: BTreeSet<AggregateId>,
    /// The pulse of the last findings. If nothing was written since, the answer has no requests and no
    /// records.
    pub since: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// As [`Store::pulse`](crate::Store::pulse), but only comparable with the pulse of other findings.
    /// Everything written before is part of these findings; something written later may be.
    pub pulse: u64,
    /// Requests not yet taken, of the aggregates that are claimed through this handle, oldest first. If
    /// one cannot be read, its error stands for all requests of that aggregate.
    pub requests: BTreeMap<AggregateId, Result<Vec<StoreRequest>, StoreError>>,
    /// New records of followed journals, as [`Store::read`](crate::Store::read) returns them.
    pub records: BTreeMap<AggregateId, Result<Vec<Numbered>, StoreError>>,
    pub unowned: BTreeSet<AggregateId>,
}

pub type Numbered = (Version, Vec<u8>);

/// Called once with the findings. As [`OnAppended`](crate::OnAppended), it passes them on and returns.
pub type OnFindings = Box<dyn FnOnce(Result<Findings, StoreError>) + Send>;
