//! The journal of a running job: the batch of pending records, and the batches being written.
//!
//! Batches reach the disk in the order in which they were closed. [`SnapshotSchedule`] decides when a snapshot
//! of the job is worth its cost.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use undaunted_engine::event::Record;
use undaunted_engine::id::StartId;
use undaunted_engine::mutant::{self, Mutant};
use undaunted_store::{Append, AppendError, Claim, RequestId, StoreRequest, Version};

use super::{AfterCommit, JobDriver, Services};
use crate::stored_job;

pub(super) struct JobJournal {
    pub(super) claim: Claim,
    /// The version once everything submitted is written.
    pub(super) version: Version,
    pub(super) pending: JournalBatch,
    /// Submitted, and not known to be on disk; oldest first.
    batches: VecDeque<JournalBatch>,
    /// The room that the records of an earlier batch took, for those of the next one.
    room: Vec<Record>,
    /// Requests that the job has handled, and that the store may still report.
    seen_requests: BTreeSet<RequestId>,
    pub(super) saving: SnapshotSchedule,
}

/// Records that are written together, and what to do when they are.
#[derive(Default)]
pub(super) struct JournalBatch {
    pub(super) records: Vec<Record>,
    /// Attempts whose end is in `records`.
    pub(super) ended: Vec<StartId>,
    pub(super) taken: Vec<RequestId>,
    /// The number of the batch in the event loop.
    pub(super) order: u64,
    fate: BatchFate,
    /// Breakers that the records have facts for.
    pub(super) breakers: BTreeSet<Arc<str>>,
    /// The result of a probe is in `records`.
    pub(super) ends_probe: bool,
    /// The breakers whose facts are appended behind the records, in that order.
    pub(super) facts: Vec<Arc<str>>,
    /// What to do when the records are on disk.
    pub(super) after_commit: Vec<AfterCommit>,
    /// The version before the records.
    pub(super) after: Version,
    /// A snapshot of the job after the records, if one is due.
    pub(super) saved: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BatchFate {
    #[default]
    UnderWay,
    /// The answer was lost in an outage.
    Lost,
    /// Submitted again; a conflict shows that the first time succeeded.
    Again,
}

impl JournalBatch {
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
    pub(super) fn new(claim: Claim, version: Version, saving: SnapshotSchedule) -> Self {
        Self {
            claim,
            version,
            pending: JournalBatch::default(),
            batches: VecDeque::new(),
            room: Vec::new(),
            seen_requests: BTreeSet::new(),
            saving,
        }
    }

    pub(super) fn is_written(&self) -> bool {
        self.pending.records.is_empty() && self.batches.is_empty()
    }

    /// Whether the end of an attempt is pending or being written.
    pub(super) fn writes_end_of(&self, start: StartId) -> bool {
        let mut unwritten = self.batches.iter().chain([&self.pending]);
        unwritten.any(|batch| batch.ended.contains(&start))
    }

    /// Keeps `action` until everything decided so far is on disk. Returns it if that is the case already.
    pub(super) fn when_written(&mut self, action: AfterCommit) -> Option<AfterCommit> {
        let last =
            if self.pending.records.is_empty() { self.batches.back_mut() } else { Some(&mut self.pending) };
        match last {
            Some(batch) => batch.after_commit.push(action),
            None => return Some(action),
        }
        None
    }

    /// Closes the pending batch. None if it has no records.
    pub(super) fn close(&mut self) -> Option<(JournalBatch, Append)> {
        if self.pending.records.is_empty() {
            return None;
        }
        let records = std::mem::take(&mut self.room);
        let next = JournalBatch { records, ..JournalBatch::default() };
        let mut batch = std::mem::replace(&mut self.pending, next);
        batch.after = self.version;
        let append = batch.append(&self.claim);
        self.saving.last = append.records.last().cloned().unwrap_or_default();
        self.version = batch.reached();
        Some((batch, append))
    }

    /// Keeps the room of records that were handled while more are being written, so that a burst does not make
    /// each batch grow anew. A job that waits keeps nothing.
    pub(super) fn reuse(&mut self, mut records: Vec<Record>) {
        records.clear();
        if self.is_written() {
            (self.room, self.pending.records) = (Vec::new(), Vec::new());
        } else if records.capacity() > self.room.capacity() {
            self.room = records;
        }
    }

    pub(super) fn track(&mut self, batch: JournalBatch) {
        self.batches.push_back(batch);
    }

    /// Handles the fate of the batch up to a version. Returns the batches that are now known to be on disk,
    /// with the versions that journals have reached, as far as the store has reported them. A batch whose
    /// answer was lost stays, and so does every later batch; they are submitted again after the outage.
    pub(super) fn answered(
        &mut self,
        reached: Version,
        result: Result<Vec<Version>, AppendError>,
    ) -> Result<Vec<(JournalBatch, Vec<Version>)>, AppendError> {
        let ends = |batch: &JournalBatch| batch.reached() == reached;
        let Some(index) = self.batches.iter().position(ends) else {
            return Ok(Vec::new());
        };
        let mut before = self.batches.iter().take(index);
        let follows_lost = before.any(|batch| batch.fate == BatchFate::Lost);
        let fate = self.batches.get(index).map(|batch| batch.fate);
        let mut versions = match result {
            Ok(versions) => versions,
            Err(_) if mutant::is(Mutant::FailedWriteIgnored) => Vec::new(),
            // Only this process writes under its claim, so the records found are those of this batch.
            Err(AppendError::Conflict { found, .. })
                if fate == Some(BatchFate::Again) && found >= reached =>
            {
                Vec::new()
            }
            Err(error) => {
                if let Some(batch) = self.batches.get_mut(index) {
                    batch.fate = BatchFate::Lost;
                }
                let is_refused_for_that = matches!(error, AppendError::Conflict { .. });
                return if follows_lost && is_refused_for_that { Ok(Vec::new()) } else { Err(error) };
            }
        };
        // The batches before it are on disk too, since it continues them.
        let stored = self.batches.drain(..=index);
        let stored = stored.map(|batch| {
            let of_batch = if ends(&batch) { std::mem::take(&mut versions) } else { Vec::new() };
            (batch, of_batch)
        });
        Ok(stored.collect())
    }

    pub(super) fn lost(&self) -> impl Iterator<Item = u64> {
        self.batches.iter().filter(|batch| batch.fate == BatchFate::Lost).map(|batch| batch.order)
    }

    /// Prepares a batch whose answer was lost for another submission: the append of its records, and the
    /// breakers it has facts for. If the first submission succeeded, the append conflicts.
    pub(super) fn resubmit(&mut self, order: u64) -> Option<(Append, Version, &[Arc<str>])> {
        let mut batches = self.batches.iter_mut();
        let batch = batches.find(|batch| batch.order == order)?;
        batch.fate = BatchFate::Again;
        let append = batch.append(&self.claim);
        Some((append, batch.reached(), &batch.facts))
    }

    /// The requests that the job has not handled yet.
    pub(super) fn unseen(&mut self, mut requests: Vec<StoreRequest>) -> Vec<StoreRequest> {
        let unwritten = self.batches.iter().chain([&self.pending]);
        let taken: Vec<_> = unwritten.flat_map(|batch| &batch.taken).collect();
        // These requests may have been read before the batch was written that takes one of them.
        let is_reported = |id| requests.iter().any(|request| request.id == id);
        self.seen_requests.retain(|id| is_reported(*id) || taken.contains(&id));
        requests.retain(|request| !self.seen_requests.contains(&request.id));
        requests
    }

    /// Marks a request as handled by the records that are decided next.
    pub(super) fn take(&mut self, request: RequestId) {
        self.seen_requests.insert(request);
        self.pending.taken.push(request);
    }
}

/// When to write a snapshot of the job, outside the loop and once the batch before it is on disk. The larger it is,
/// the less often it is written, so that the cost per record does not grow with the job.
pub(super) struct SnapshotSchedule {
    /// The last version it covers.
    pub(super) at: Version,
    pub(super) bytes: usize,
    /// The last record that was handed over, encoded.
    pub(super) last: Vec<u8>,
    pub(super) under_way: Arc<AtomicBool>,
}

#[derive(Clone, Copy)]
pub(super) enum SnapshotOccasion {
    Batch,
    /// Nothing runs, and nothing is being written.
    Idle,
    OwnerStops,
}

impl SnapshotOccasion {
    /// How many bytes a snapshot may have for every record since the last one. The record of an
    /// attempt has some sixty bytes itself.
    const fn bytes_a_record(self) -> usize {
        match self {
            Self::Batch => 32,
            // Nothing waits for it, and it may shorten a later recovery a lot.
            Self::Idle => 256,
            Self::OwnerStops => usize::MAX,
        }
    }
}

impl JobJournal {
    /// Writes a snapshot at a version that is on the disk.
    pub(super) fn write_saved(&self, services: &Services, at: Version, bytes: Vec<u8>) {
        let store = Arc::clone(&services.store);
        let aggregate = self.claim.aggregate.clone();
        let under_way = Arc::clone(&self.saving.under_way);
        under_way.store(true, Ordering::Release);
        services.machine.save(Box::new(move || {
            // Without a snapshot, recovery only takes longer.
            drop(store.save_snapshot(&aggregate, at, bytes));
            under_way.store(false, Ordering::Release);
        }));
    }
}

impl JobDriver<'_> {
    /// A snapshot after everything that was submitted, if it is worth its cost now.
    pub(super) fn snapshot_if_due(&mut self, occasion: SnapshotOccasion) -> Option<Vec<u8>> {
        let version = self.journal.version;
        let saving = &mut self.journal.saving;
        let since = version.0.saturating_sub(saving.at.0);
        let records = usize::try_from(since).unwrap_or(usize::MAX);
        let may_have = records.saturating_mul(occasion.bytes_a_record());
        // A job that has ended is rarely resumed; and a snapshot needs the last record it covers.
        if self.job.stage.has_ended()
            || saving.last.is_empty()
            || since < self.context.services.machine.save_after()
            || may_have < saving.bytes
            || saving.under_way.load(Ordering::Acquire)
        {
            return None;
        }
        let bytes = stored_job::snapshot_bytes(&self.job, &saving.last);
        saving.at = version;
        saving.bytes = bytes.len();
        Some(bytes)
    }

    pub(super) fn snapshot_if_idle(&mut self) {
        if self.journal.is_written()
            && self.job.starts.running.is_empty()
            && let Some(bytes) = self.snapshot_if_due(SnapshotOccasion::Idle)
        {
            let at = self.journal.version;
            self.journal.write_saved(self.context.services, at, bytes);
        }
    }

    pub(super) fn save_before_leaving(&mut self) {
        if self.journal.is_written()
            && let Some(bytes) = self.snapshot_if_due(SnapshotOccasion::OwnerStops)
        {
            let (of, at) = (&self.journal.claim.aggregate, self.journal.version);
            // Without a snapshot, recovery only takes longer.
            drop(self.context.services.store.save_snapshot(of, at, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use undaunted_engine::event::{Event, JobEvent};
    use undaunted_policy::Timestamp;
    use undaunted_store::{AggregateId, Epoch};

    use super::*;

    fn journal() -> JobJournal {
        let aggregate = AggregateId::new("job", "a").unwrap();
        let claim = Claim { aggregate, epoch: Epoch(1), version: Version::EMPTY };
        let saving =
            SnapshotSchedule { at: Version::EMPTY, bytes: 0, last: Vec::new(), under_way: Arc::default() };
        JobJournal::new(claim, Version::EMPTY, saving)
    }

    fn submit(journal: &mut JobJournal, records: usize) {
        let record = Record { at: Timestamp::ZERO, event: Event::Job(JobEvent::Suspended) };
        journal.pending.records.extend(std::iter::repeat_n(record, records));
        let (batch, _) = journal.close().unwrap();
        journal.track(batch);
    }

    fn stored(journal: &mut JobJournal, reached: u64) {
        for (batch, _) in journal.answered(Version(reached), Ok(Vec::new())).unwrap() {
            journal.reuse(batch.records);
        }
    }

    #[test]
    fn the_batches_of_a_burst_share_room_and_a_job_that_waits_keeps_none() {
        let mut journal = journal();
        submit(&mut journal, 100);
        submit(&mut journal, 10);
        stored(&mut journal, 100);
        submit(&mut journal, 1);
        assert!(journal.pending.records.capacity() >= 100);
        stored(&mut journal, 111);
        assert_eq!((journal.room.capacity(), journal.pending.records.capacity()), (0, 0));
    }
}
