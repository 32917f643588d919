//! What a store promises.
//!
//! Journals of opaque records, one for each aggregate. Records are appended and never changed, though the
//! beginning of a journal may be trimmed; an append that returned `Ok` is on the disk. The store knows
//! nothing of jobs and events and takes no decision but whether an append may stand.

use std::sync::mpsc;

use crate::aggregate::AggregateId;
use crate::append::{Append, AppendError};
use crate::claim::{Claim, ClaimError, Owner};
use crate::error::StoreError;
use crate::question::{OnFindings, Question};
use crate::request::{RequestId, StoreRequest};
use crate::snapshot::FoundSnapshot;
use crate::version::{Epoch, Version};

/// Called once with the result of a submission: for each of its appends, in order, the version that its
/// journal has reached with it. It may run on the store's only writing thread, so it passes the result
/// on and returns; it must not call the store.
pub type OnAppended = Box<dyn FnOnce(Result<Vec<Version>, AppendError>) + Send>;

/// Builds the appends to be written under a claim. It may be called more than once.
pub type UnderClaim = Box<dyn Fn(&Claim) -> Vec<Append> + Send>;

/// The records of a journal, in order. The iterator ends after an error.
pub type Records<'a> = Box<dyn Iterator<Item = Result<(Version, Vec<u8>), StoreError>> + Send + 'a>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub version: Version,
    /// Of the latest claim of the aggregate.
    pub epoch: Epoch,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub aggregate: AggregateId,
    pub head: Head,
}

/// Where facts are kept. An aggregate exists from its first record on; the first append creates it. It
/// may be claimed before that.
pub trait Store: Send + Sync {
    /// Appends to several aggregates, guarded appends and facts in any mixture: all of it or nothing.
    /// `done` is called once the appends are on the disk, or refused. Many submissions may be in flight;
    /// they share a sync, and a refused one does not affect the others. Submissions through one handle
    /// are processed in order.
    ///
    /// After [`StoreError::Unreachable`] it is unknown whether the append stands. Everything submitted
    /// since is refused with the same error until a question is answered ([`Store::ask`]); by then every
    /// append has either taken effect or failed, and can be submitted again: one that stands is refused
    /// as a conflict.
    fn submit(&self, appends: Vec<Append>, done: OnAppended);

    /// As [`Store::submit`], and waits for the result.
    ///
    /// # Errors
    ///
    /// [`AppendError`]; then nothing was stored. The exceptions: after [`StoreError::MustReopen`] that is
    /// unknown until the store is opened again, after [`StoreError::Unreachable`] until it answers.
    fn append(&self, appends: Vec<Append>) -> Result<Vec<Version>, AppendError> {
        let (tell, told) = mpsc::sync_channel(1);
        self.submit(
            appends,
            Box::new(move |result| {
                // The receiver is `recv` below; it is gone only if this call has panicked.
                let _ = tell.send(result);
            }),
        );
        told.recv().unwrap_or_else(|_| Err(StoreError::closed().into()))
    }

    /// `None` if the aggregate was never claimed and has no records.
    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError>;

    /// The records after a version, up to the head at the time of the call. Versions rise by one, except
    /// where records were trimmed, before the call or during the iteration: then the next item is the
    /// first remaining record, even if it is newer than that head. So a version that does not follow the
    /// previous one tells the reader that it has missed records.
    ///
    /// # Errors
    ///
    /// [`StoreError`], here or from the iterator; [`StoreError::Damaged`] comes in the place of the
    /// damaged record, after all those before it.
    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError>;

    /// The aggregates of a family that have records and whose ids begin with a prefix, in the order
    /// of their ids.
    fn list(&self, family: &str, prefix: &str) -> Result<Vec<Listed>, StoreError>;

    /// Removes the records of a journal with versions below `before`, which a later record must have made
    /// superfluous; a snapshot is not enough, because it may be lost. Versions keep their numbers, and the
    /// head and the last record stay, whatever `before` is. A store may keep records that were appended
    /// together with one that stays.
    ///
    /// Trimming needs no claim and may run beside appends and reads; trimming twice is no error. It is
    /// housekeeping: a crash of the machine may bring the records back.
    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError>;

    /// Removes an aggregate: records, snapshots, requests. Removing a missing aggregate is no error.
    ///
    /// # Errors
    ///
    /// [`AppendError::Fenced`] if the epoch is not the current one.
    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError>;

    /// Claims an aggregate, with a higher epoch than any before. From then on appends with another epoch
    /// are fenced.
    ///
    /// # Errors
    ///
    /// [`ClaimError::OwnedBy`] while its owner is alive, even if the owner is this handle.
    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError>;

    /// Claims an aggregate and appends in the same commit, which costs one sync instead of two. If the
    /// append is refused nothing is claimed.
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

    /// The living owner of an aggregate, if it has one. Read-only.
    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError>;

    /// Gives a claim up. A claim that no longer counts is no error.
    fn unclaim(&self, claim: &Claim) -> Result<(), StoreError>;

    /// As [`Store::unclaim`], without waiting for the result. A later claim through this handle finds the
    /// aggregate free; if releasing fails, the claim ends with the handle. During an outage
    /// ([`StoreError::Unreachable`]) the claim is released by the time the outage ends.
    fn unclaim_in_background(&self, claim: &Claim) {
        drop(self.unclaim(claim));
    }

    /// Stores a request for the owner of an aggregate. On the disk when it returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the aggregate has no records.
    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError>;

    /// The requests of an aggregate that no append has taken yet, oldest first.
    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<StoreRequest>, StoreError>;

    /// Answers everything that an event loop asks its store in one round, without blocking the loop:
    /// `done` is called, perhaps on another thread. Cheap while nothing was written, since every round
    /// asks. Questions through one handle are answered in order.
    ///
    /// An answered question also ends an outage of this handle ([`StoreError::Unreachable`]).
    fn ask(&self, question: Question, done: OnFindings);

    /// Saves a state. The store may delete earlier snapshots.
    ///
    /// # Errors
    ///
    /// [`StoreError::AheadOfJournal`] if the journal is not that long.
    fn save_snapshot(&self, aggregate: &AggregateId, at: Version, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// The latest usable snapshot. An unusable one is skipped, not an error.
    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<FoundSnapshot, StoreError>;

    /// Returns the space of removed data to the file system, and the size of the store in bytes before
    /// and after. Others may read meanwhile; writers wait. A store that needs no compacting returns zeros.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] if others write for too long, or any other [`StoreError`].
    fn compact(&self) -> Result<[u64; 2], StoreError> {
        Ok([0, 0])
    }

    /// A number that changes whenever any process writes to the store. Cheap: an owner polls it, and
    /// looks for requests when it has changed.
    fn pulse(&self) -> Result<u64, StoreError>;
}
