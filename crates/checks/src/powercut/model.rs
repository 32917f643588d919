//! The reference model of a store.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_store::AggregateId;

/// A record of a journal, or the payload of a request.
pub(super) type RecordBytes = Arc<Vec<u8>>;

pub(super) const AGGREGATES: usize = 6;

pub(super) const FAMILIES: [&str; 2] = ["job", "breaker"];

pub(super) fn aggregate(index: usize) -> Result<AggregateId, String> {
    let family = FAMILIES.get(index & 1).copied().unwrap_or_default();
    AggregateId::new(family, format!("{index}")).map_err(|error| error.to_string())
}

/// What is written to one aggregate.
#[derive(Clone, Debug)]
pub(super) struct AppendPart {
    pub(super) index: usize,
    pub(super) records: Vec<RecordBytes>,
    pub(super) taken: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum StoreOperation {
    /// An append, atomic over its parts.
    Append(Vec<AppendPart>),
    /// The answer is the number of the request.
    Request {
        index: usize,
        bytes: RecordBytes,
    },
    /// The answer is the epoch.
    Claim {
        index: usize,
    },
    /// A claim and an append in one commit. The answer is the epoch.
    ClaimWriting {
        index: usize,
        records: Vec<RecordBytes>,
    },
    Remove {
        index: usize,
    },
    /// An append that must be refused.
    Refused,
}

/// A call through a handle, and its answer.
#[derive(Clone, Debug)]
pub(super) struct StoreCall {
    pub(super) handle: usize,
    pub(super) what: StoreOperation,
    pub(super) answer: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModelAggregate {
    pub(super) epoch: u64,
    pub(super) records: Vec<RecordBytes>,
    pub(super) requests: BTreeMap<u64, RecordBytes>,
}

/// Everything in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StoreModel {
    pub(super) aggregates: BTreeMap<usize, ModelAggregate>,
    /// The highest epoch so far.
    pub(super) epoch: u64,
    /// The highest request number so far.
    pub(super) request: u64,
}

impl StoreModel {
    pub(super) fn of(&self, index: usize) -> ModelAggregate {
        self.aggregates.get(&index).cloned().unwrap_or_default()
    }

    pub(super) fn apply(&mut self, call: &StoreCall) {
        match &call.what {
            StoreOperation::Append(parts) => {
                for part in parts {
                    let aggregate = self.aggregates.entry(part.index).or_default();
                    aggregate.records.extend(part.records.iter().cloned());
                    aggregate.requests.retain(|id, _| !part.taken.contains(id));
                }
            }
            StoreOperation::Request { index, bytes } => {
                self.request = self.request.max(call.answer);
                let aggregate = self.aggregates.entry(*index).or_default();
                aggregate.requests.insert(call.answer, bytes.clone());
            }
            StoreOperation::Claim { index } => {
                self.epoch = self.epoch.max(call.answer);
                self.aggregates.entry(*index).or_default().epoch = call.answer;
            }
            StoreOperation::ClaimWriting { index, records } => {
                self.epoch = self.epoch.max(call.answer);
                let aggregate = self.aggregates.entry(*index).or_default();
                aggregate.epoch = call.answer;
                aggregate.records.extend(records.iter().cloned());
            }
            StoreOperation::Remove { index } => {
                self.aggregates.remove(index);
            }
            StoreOperation::Refused => {}
        }
    }

    /// The first difference from another model.
    pub(super) fn difference(&self, observed: &Self) -> Option<String> {
        (0..AGGREGATES).find_map(|index| {
            let name = aggregate(index).map_or_else(|error| error, |name| name.to_string());
            let what = match (self.aggregates.get(&index), observed.aggregates.get(&index)) {
                (None, None) => return None,
                (Some(_), None) => "is missing".to_owned(),
                (None, Some(_)) => "is there, and should not be".to_owned(),
                (Some(expected), Some(observed)) => expected.difference(observed)?,
            };
            Some(format!("{name} {what}"))
        })
    }
}

impl ModelAggregate {
    fn difference(&self, observed: &Self) -> Option<String> {
        let (expected, got) = (self.records.len(), observed.records.len());
        if expected != got {
            return Some(format!("has {got} records, acknowledged were {expected}"));
        }
        let pairs = self.records.iter().zip(&observed.records);
        if let Some(at) = pairs.map(|(one, other)| one == other).position(|same| !same) {
            let version = at.saturating_add(1);
            return Some(format!("has another record {version} than was appended"));
        }
        if self.epoch != observed.epoch {
            let (epoch, got) = (self.epoch, observed.epoch);
            return Some(format!("is in epoch {got}, acknowledged was {epoch}"));
        }
        if self.requests != observed.requests {
            let ids = |of: &Self| of.requests.keys().copied().collect::<Vec<_>>();
            let (expected, got) = (ids(self), ids(observed));
            return Some(format!("has the requests {got:?}, acknowledged were {expected:?}"));
        }
        None
    }
}
