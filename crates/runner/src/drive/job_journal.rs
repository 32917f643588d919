//! The journal of a running job: what is decided and not yet written, and what is being written.
//!
//! Batches are appended in the order in which they were closed, and come to be on the disk in it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use undaunted_engine::event::Record;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::{Append, AppendError, Claim, Request, RequestId, Version};

use super::message::When;
use super::save::Saving;

/// The journal of a job that is being run.
pub(super) struct JobJournal {
    pub(super) claim: Claim,
    /// How long the journal is when everything handed over is written.
    pub(super) version: Version,
    /// Records that are not handed over yet.
    pub(super) pending: Batch,
    /// What was handed over and is not on the disk yet, oldest first.
    batches: VecDeque<Batch>,
    /// Requests that the job has acted upon, and that the store may still tell of.
    heard: BTreeSet<RequestId>,
    /// When the job was saved last.
    pub(super) saving: Saving,
}

/// Records that are written together, and what is to be done when they are.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    /// Attempts whose end is in them.
    pub(super) ended: Vec<u64>,
    pub(super) taken: Vec<RequestId>,
    /// The how-manieth of the event loop it is.
    pub(super) order: u64,
    /// What is known of its fate.
    fate: BatchFate,
    /// Breakers that are told something by them.
    pub(super) breakers: BTreeSet<Arc<str>>,
    /// Whether the result of a probe is among it.
    pub(super) ends_probe: bool,
    /// Those of them whose facts are appended behind the records, in that order.
    pub(super) facts: Vec<Arc<str>>,
    /// What else waits for them to be on the disk.
    pub(super) then: Vec<When>,
    /// The version before them.
    pub(super) after: Version,
    /// The job as it is behind them, if it is saved there.
    pub(super) saved: Option<Vec<u8>>,
}

/// What is known of a batch that was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BatchFate {
    /// It is being written.
    #[default]
    UnderWay,
    /// The answer was lost.
    Lost,
    /// It is being written once more, unless it stood before.
    Again,
}

impl Batch {
    /// The version that the journal has with them.
    pub(super) fn reached(&self) -> Version {
        self.after.after(self.records.len())
    }

    fn append(&self, claim: &Claim) -> Append {
        let records = self.records.iter().map(Record::encode).collect();
        let append = Append::new(claim.aggregate.clone(), self.after, claim.epoch, records);
        append.taking(self.taken.iter().copied())
    }
}

impl JobJournal {
    pub(super) fn new(claim: Claim, version: Version, saving: Saving) -> Self {
        Self {
            claim,
            version,
            pending: Batch::default(),
            batches: VecDeque::new(),
            heard: BTreeSet::new(),
            saving,
        }
    }

    /// Whether everything that was decided is on the disk.
    pub(super) fn is_written(&self) -> bool {
        self.pending.records.is_empty() && self.batches.is_empty()
    }

    /// Whether the end of an attempt is being written, or waits for that.
    pub(super) fn writes_end_of(&self, start: u64) -> bool {
        let mut unwritten = self.batches.iter().chain([&self.pending]);
        unwritten.any(|batch| batch.ended.contains(&start))
    }

    /// Has something done when everything decided so far is on the disk. Gives it back if it is already.
    pub(super) fn when_written(&mut self, what: When) -> Option<When> {
        let last = if self.pending.records.is_empty() {
            self.batches.back_mut()
        } else {
            Some(&mut self.pending)
        };
        match last {
            Some(batch) => batch.then.push(what),
            None => return Some(what),
        }
        None
    }

    /// Closes the batch that is open, with the append that writes its records. Nothing if it has none.
    pub(super) fn close(&mut self) -> Option<(Batch, Append)> {
        if self.pending.records.is_empty() {
            return None;
        }
        let mut batch = std::mem::take(&mut self.pending);
        batch.after = self.version;
        let append = batch.append(&self.claim);
        self.saving.last = append.records.last().cloned().unwrap_or_default();
        self.version = batch.reached();
        Some((batch, append))
    }

    /// A batch that was closed is about to be written.
    pub(super) fn writes(&mut self, batch: Batch) {
        self.batches.push_back(batch);
    }

    /// What became of the batch up to a version: the batches that are on the disk by that, and where journals
    /// have reached what they told, as far as that was answered. A batch whose answer was lost stays, and so
    /// does every batch behind it: they are submitted again when the store can be reached.
    pub(super) fn answered(
        &mut self,
        reached: Version,
        result: Result<Vec<Version>, AppendError>,
    ) -> Result<Vec<(Batch, Vec<Version>)>, AppendError> {
        let ends = |batch: &Batch| batch.reached() == reached;
        let Some(place) = self.batches.iter().position(ends) else {
            return Ok(Vec::new());
        };
        let mut before = self.batches.iter().take(place);
        let follows_lost = before.any(|batch| batch.fate == BatchFate::Lost);
        let fate = self.batches.get(place).map(|batch| batch.fate);
        let mut versions = match result {
            Ok(versions) => versions,
            Err(_) if mutant::is(Mutant::FailedWriteIgnored) => Vec::new(),
            // Only this process writes under its claim, so what is there is what it wrote before.
            Err(AppendError::Conflict { found, .. })
                if fate == Some(BatchFate::Again) && found >= reached =>
            {
                Vec::new()
            }
            Err(error) => {
                if let Some(batch) = self.batches.get_mut(place) {
                    batch.fate = BatchFate::Lost;
                }
                let is_refused_for_that = matches!(error, AppendError::Conflict { .. });
                return if follows_lost && is_refused_for_that {
                    Ok(Vec::new())
                } else {
                    Err(error)
                };
            }
        };
        // Those before it are on the disk too: it continues them.
        let stored = self.batches.drain(..=place);
        let stored = stored.map(|batch| {
            let of_batch = if ends(&batch) {
                std::mem::take(&mut versions)
            } else {
                Vec::new()
            };
            (batch, of_batch)
        });
        Ok(stored.collect())
    }

    /// The batches whose answer was lost, by their numbers.
    pub(super) fn lost(&self) -> impl Iterator<Item = u64> {
        let lost = self.batches.iter();
        let lost = lost.filter(|batch| batch.fate == BatchFate::Lost);
        lost.map(|batch| batch.order)
    }

    /// A batch whose answer was lost is written again: what writes its records, and the breakers it tells
    /// something. If it stands already, that is a conflict.
    pub(super) fn write_again(&mut self, order: u64) -> Option<(Append, Version, &[Arc<str>])> {
        let mut batches = self.batches.iter_mut();
        let batch = batches.find(|batch| batch.order == order)?;
        batch.fate = BatchFate::Again;
        let append = batch.append(&self.claim);
        Some((append, batch.reached(), &batch.facts))
    }

    /// Of all requests that are not taken yet, those the job has not acted upon.
    pub(super) fn unheard(&mut self, requests: Vec<Request>) -> Vec<Request> {
        let unwritten = self.batches.iter().chain([&self.pending]);
        let taken: Vec<_> = unwritten.flat_map(|batch| &batch.taken).collect();
        // The store may have been asked before the batch was written that takes a request.
        let is_told = |id| requests.iter().any(|request| request.id == id);
        self.heard.retain(|id| is_told(*id) || taken.contains(&id));
        let heard = &self.heard;
        let unheard = requests.into_iter();
        unheard
            .filter(|request| !heard.contains(&request.id))
            .collect()
    }

    /// The records that are decided next act upon a request.
    pub(super) fn take(&mut self, request: RequestId) {
        self.heard.insert(request);
        self.pending.taken.push(request);
    }
}
