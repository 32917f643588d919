//! The contract of all stores: the trait [`Store`].
//!
//! A store keeps journals of opaque records, one for each aggregate. Records are appended and never changed,
//! but the beginning of a journal may be trimmed. An append that returned `Ok` is on the disk. The store
//! knows nothing of jobs and events; its only decision is whether to accept an append.

use std::sync::mpsc;

use crate::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, OnFindings, Owner, Question, RequestId,
    StoreError, StoreRequest, Version,
};

/// Called once with the result of a submission: for each append, in order, the version that its journal has
/// reached. It may run on the store's only writer thread, so it must return quickly and must not call the
/// store.
pub type OnAppended = Box<dyn FnOnce(Result<Vec<Version>, AppendError>) + Send>;

/// Builds the appends to write under a claim. It may be called more than once.
pub type UnderClaim = Box<dyn Fn(&Claim) -> Vec<Append> + Send>;

/// The records of a journal, in order. The iterator ends after an error.
pub type Records<'a> = Box<dyn Iterator<Item = Result<(Version, Vec<u8>), StoreError>> + Send + 'a>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub version: Version,
    /// The epoch of the latest claim of the aggregate.
    pub epoch: Epoch,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAggregate {
    pub aggregate: AggregateId,
    pub head: Head,
}

/// A state saved to shorten recovery. It repeats what the journal says, so a missing, damaged or unusable
/// snapshot costs time and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The version of the last record in the snapshot.
    pub at: Version,
    /// The state, in the caller's encoding.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundSnapshot {
    pub latest: Option<Snapshot>,
    /// Why later snapshots could not be used, one sentence each. The caller reports them and recovers anyway.
    pub ignored: Vec<String>,
}

/// A handle on a store. The first append to an aggregate creates it; it may be claimed before that.
pub trait Store: Send + Sync {
    /// Appends to one or several aggregates, atomically. Guarded appends and facts can be mixed. `done` is
    /// called when the appends are on the disk, or refused. Many submissions may be in flight: they share a
    /// sync, and a refused one does not affect the others. Submissions through one handle are processed in
    /// order.
    ///
    /// After [`StoreError::Unreachable`] it is unknown whether the append took effect. Further submissions are
    /// refused with the same error until a question is answered ([`Store::ask`]). By then every append has
    /// either taken effect or failed, and can be submitted again: one that took effect is refused as a
    /// conflict.
    fn submit(&self, appends: Vec<Append>, done: OnAppended);

    /// Like [`Store::submit`], and waits for the result.
    ///
    /// After an [`AppendError`] nothing was stored, with two exceptions: after [`StoreError::MustReopen`] that
    /// is unknown until the store is reopened, after [`StoreError::Unreachable`] until the store answers.
    fn append(&self, appends: Vec<Append>) -> Result<Vec<Version>, AppendError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit(
            appends,
            Box::new(move |result| {
                // The receiver waits below; it is gone only if this call has panicked.
                let _ = sender.send(result);
            }),
        );
        receiver.recv().unwrap_or_else(|_| Err(StoreError::closed().into()))
    }

    /// `None` if the aggregate was never claimed and has no records.
    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError>;

    /// The records after a version, up to the head at the time of the call. Versions rise by one, except
    /// where records were trimmed, before the call or during the iteration: then the next item is the first
    /// remaining record, even if it is newer than that head. A gap in the versions therefore means that the
    /// reader has missed records.
    ///
    /// Fails with [`StoreError`], here or from the iterator. [`StoreError::Damaged`] is returned in place of
    /// the damaged record, after all records before it.
    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError>;

    /// The aggregates of a family that have records and whose ids begin with `prefix`, sorted by id.
    fn list(&self, family: &str, prefix: &str) -> Result<Vec<ListedAggregate>, StoreError>;

    /// Removes the records of a journal with versions below `before`. A later record must have made them
    /// superfluous; a snapshot is not enough, because it may be lost. The remaining records keep their
    /// versions, and the last record is never removed. A store may keep records that were appended together
    /// with a remaining one.
    ///
    /// Trimming needs no claim, may run concurrently with appends and reads, and may be repeated. After a
    /// crash of the machine, trimmed records may be back.
    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError>;

    /// Removes an aggregate with its records, snapshots and requests. A missing aggregate is no error.
    ///
    /// Fails with [`AppendError::Fenced`] if the epoch is not the current one.
    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError>;

    /// Claims an aggregate with a higher epoch than all claims before. From then on appends with another
    /// epoch are fenced.
    ///
    /// Fails with [`ClaimError::OwnedBy`] while its owner is alive, even if the owner is this handle.
    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError>;

    /// Claims an aggregate and appends in the same commit, with one sync instead of two. If the append is
    /// refused, nothing is claimed.
    fn claim_writing(
        &self,
        aggregate: &AggregateId,
        appends: UnderClaim,
    ) -> Result<Result<Claim, AppendError>, ClaimError> {
        let claim = self.claim(aggregate)?;
        let written = self.append(appends(&claim));
        if written.is_err() {
            self.unclaim_in_background(&claim);
        }
        Ok(written.map(|_| claim))
    }

    /// Like [`Store::claim_writing`], for a caller that soon commits more: it returns when all readers see the
    /// commit, which is on the disk when the next commit is, or some milliseconds later. A crash of the machine
    /// before that may lose it, and whatever follows it.
    fn claim_writing_ahead(
        &self,
        aggregate: &AggregateId,
        appends: UnderClaim,
    ) -> Result<Result<Claim, AppendError>, ClaimError> {
        self.claim_writing(aggregate, appends)
    }

    /// The living owner of an aggregate, if it has one. Read-only.
    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError>;

    /// Releases a claim. Releasing an outdated claim is no error.
    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError>;

    /// Like [`Store::unclaim`], without waiting for the result. A later claim through this handle finds the
    /// aggregate unowned. If the release fails, the claim ends with the handle; during an outage
    /// ([`StoreError::Unreachable`]) it takes effect by the end of the outage.
    fn unclaim_in_background(&self, claim: &Claim) {
        drop(self.unclaim(claim));
    }

    /// Stores a request for the owner of an aggregate. The request is on the disk when this returns.
    ///
    /// Fails with [`StoreError::NotFound`] if the aggregate has no records.
    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError>;

    /// The requests of an aggregate that no append has taken yet, oldest first.
    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError>;

    /// Answers everything that an event loop asks its store in one round, without blocking the loop: `done`
    /// may be called on another thread. The answer is cheap if the store has not changed. Questions through
    /// one handle are answered in order.
    ///
    /// An answer also ends an outage of this handle ([`StoreError::Unreachable`]).
    fn ask(&self, question: Question, done: OnFindings);

    /// Saves a snapshot. The store may delete earlier ones.
    ///
    /// Fails with [`StoreError::AheadOfJournal`] if the journal has not reached that version.
    fn save_snapshot(&self, aggregate: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// The latest usable snapshot. An unusable one is skipped, not an error.
    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<FoundSnapshot, StoreError>;

    /// Returns the space of removed data to the file system. The result is the size of the store in bytes
    /// before and after, or zeros if the store needs no compaction. Meanwhile readers continue and writers
    /// wait.
    ///
    /// Fails with [`StoreError::Busy`] if other processes write for too long, or any other [`StoreError`].
    fn compact(&self) -> Result<[u64; 2], StoreError> {
        Ok([0, 0])
    }

    /// A number that changes whenever a process writes to the store. Reading it is cheap, so an owner polls
    /// it and looks for requests when it has changed.
    fn pulse(&self) -> Result<u64, StoreError>;
}
