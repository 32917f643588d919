//! The form of a projection in index files.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use undaunted_policy::{Reason, Timestamp};

use super::counters::JobCounters;
use super::index::{IndexKeys, ItemPage, RecordIndex};
use super::projection::{EndRecord, LateItem, Projection, ResumeRecord, StepFailure, StepHistory};
use crate::event::{RecordError, codec};
use crate::id::{ItemId, StepId};

/// A projection without the columns of its index. Flows are not saved.
#[derive(Encode, Decode)]
struct SavedProjection {
    #[n(0)]
    resumes: Vec<ResumeRecord>,
    #[n(1)]
    late: Vec<LateItem>,
    #[n(2)]
    steps: BTreeMap<StepId, SavedStep>,
    #[n(3)]
    end: Option<EndRecord>,
    #[n(4)]
    failed: Option<StepId>,
    #[n(5)]
    turns: Vec<u64>,
    #[n(6)]
    pages: Vec<ItemPage>,
    #[n(7)]
    counters: JobCounters,
    #[n(8)]
    #[cbor(with = "codec::maybe_reason", has_nil)]
    stopping: Option<Reason>,
    #[n(9)]
    charged: BTreeMap<ItemId, u32>,
}

#[derive(Encode, Decode)]
struct SavedStep {
    #[n(0)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    started: Option<Timestamp>,
    #[n(1)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    ended: Option<Timestamp>,
    #[n(2)]
    failure: Option<StepFailure>,
}

impl Projection {
    /// Everything but the two columns of the index and the histories. Only for jobs that are no flows.
    pub fn save(&self) -> Vec<u8> {
        let steps = self.steps.iter().map(|(step, past)| {
            let saved = SavedStep { started: past.started, ended: past.ended, failure: past.failure.clone() };
            (*step, saved)
        });
        let mut bytes = Vec::new();
        let saved = SavedProjection {
            resumes: self.resumes.clone(),
            late: self.late.clone(),
            steps: steps.collect(),
            end: self.end.clone(),
            failed: self.failed,
            turns: self.turns.clone(),
            pages: self.index.pages.clone(),
            counters: self.counters.clone(),
            stopping: self.stopping,
            charged: self.charged.clone(),
        };
        codec::put(&saved, &mut bytes);
        bytes
    }

    pub fn restore(bytes: &[u8], names: Vec<u8>, records: Vec<u8>) -> Result<Self, RecordError> {
        let saved: SavedProjection = codec::read(bytes)?;
        let steps = saved.steps.into_iter().map(|(step, saved)| {
            let past = StepHistory {
                started: saved.started,
                ended: saved.ended,
                failure: saved.failure,
                ..StepHistory::default()
            };
            (step, past)
        });
        Ok(Self {
            resumes: saved.resumes,
            late: saved.late,
            steps: steps.collect(),
            end: saved.end,
            failed: saved.failed,
            turns: saved.turns,
            stopping: saved.stopping,
            charged: saved.charged,
            index: RecordIndex { records: IndexKeys(records), names: IndexKeys(names), pages: saved.pages },
            counters: saved.counters,
            ..Self::default()
        })
    }
}
