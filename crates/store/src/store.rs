//! What a store promises.
//!
//! Journals of opaque records, one for each aggregate. They are appended to and never changed, though
//! their beginning may be trimmed; what `append` has answered `Ok` to is on the disk. The store knows nothing of jobs and events, gives
//! no meaning to a byte, and takes no decision but whether an append may stand.

use std::sync::mpsc;

use crate::aggregate::AggregateId;
use crate::append::{Append, AppendError};
use crate::claim::{Claim, ClaimError, Owner};
use crate::error::StoreError;
use crate::question::{OnFindings, Question};
use crate::request::{Request, RequestId};
use crate::snapshot::Found;
use crate::version::{Epoch, Version};

/// Told the fate of a submission, once: for each of its appends, in order, the version that its
/// journal has reached with it. It may run on the store's only writing thread, so it hands the news on
/// and returns; it does not call the store.
pub type Done = Box<dyn FnOnce(Result<Vec<Version>, AppendError>) + Send>;

/// Puts together what is appended under a claim. It may be asked more than once.
pub type UnderClaim = Box<dyn Fn(&Claim) -> Vec<Append> + Send>;

/// The records of a journal, in order. After an error there are no more.
pub type Records<'a> = Box<dyn Iterator<Item = Result<(Version, Vec<u8>), StoreError>> + Send + 'a>;

/// Where a journal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// How many records it has.
    pub version: Version,
    /// The latest claim of its aggregate.
    pub epoch: Epoch,
}

/// An aggregate in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub aggregate: AggregateId,
    /// Where its journal is.
    pub head: Head,
}

/// Where facts are kept. An aggregate exists from its first record on; the first append makes it,
/// and a claim may come before.
pub trait Store: Send + Sync {
    /// Appends to several aggregates, guarded appends and facts in any mixture: all of it or nothing.
    /// `done` is told when it is on the disk, or refused. Many may be under way at once; they share a sync, and one that is refused does
    /// not touch the others. What is submitted through one handle is done in that order.
    ///
    /// After [`StoreError::Unreachable`] it is not known whether the append stands. Everything submitted
    /// since is refused in the same way until a question is answered ([`Store::ask`]); by then the fate of
    /// every append is settled, and it can be submitted again: one that stands is refused as a conflict.
    fn submit(&self, appends: Vec<Append>, done: Done);

    /// As [`Store::submit`], and waits.
    ///
    /// # Errors
    ///
    /// [`AppendError`]; nothing was stored then, except that after [`StoreError::MustReopen`] it is not
    /// known until the store was opened again, and after [`StoreError::Unreachable`] until it answers.
    fn append(&self, appends: Vec<Append>) -> Result<Vec<Version>, AppendError> {
        let (tell, told) = mpsc::sync_channel(1);
        self.submit(
            appends,
            Box::new(move |result| {
                // Whoever asked is waiting below; if they are gone, nobody wants to know.
                let _ = tell.send(result);
            }),
        );
        told.recv()
            .unwrap_or_else(|_| Err(StoreError::closed().into()))
    }

    /// Where a journal is. `None` if the aggregate was never claimed and has no records.
    fn head(&self, aggregate: &AggregateId) -> Result<Option<Head>, StoreError>;

    /// The records after a version, up to the head at the time of the call. Versions rise by one,
    /// except where records were trimmed, before the call or while they are read: then the first record
    /// there is comes next, even if it is newer than that head. So a reader that finds a version which
    /// does not follow the one it has reached knows that it has missed some.
    ///
    /// # Errors
    ///
    /// [`StoreError`], here or from the iterator; [`StoreError::Damaged`] comes in the place of the
    /// damaged record, after all those before it.
    fn read(&self, aggregate: &AggregateId, after: Version) -> Result<Records<'_>, StoreError>;

    /// The aggregates of a family that have records and whose ids begin with a prefix, in the order
    /// of their ids.
    fn list(&self, family: &str, prefix: &str) -> Result<Vec<Listed>, StoreError>;

    /// Removes the records of a journal with versions below `before`, where a later record makes them
    /// superfluous; a snapshot does not, because it may be lost. Versions keep their numbers, and the head
    /// stays. So does the last record, whatever `before` is, and a store may keep what was appended
    /// together with a record that stays.
    ///
    /// It needs no claim, others may append and read meanwhile, and what is gone already is no error. It
    /// is housekeeping: the death of the machine may bring the records back.
    fn trim(&self, aggregate: &AggregateId, before: Version) -> Result<(), StoreError>;

    /// Removes an aggregate: records, snapshots, requests. What is not there is removed already.
    ///
    /// # Errors
    ///
    /// [`AppendError::Fenced`] if the epoch is not the current one.
    fn remove(&self, aggregate: &AggregateId, epoch: Epoch) -> Result<(), AppendError>;

    /// Claims an aggregate, with a higher epoch than any before. From then on appends with another
    /// epoch are fenced.
    ///
    /// # Errors
    ///
    /// [`ClaimError::OwnedBy`] while its owner lives, also if that is this handle.
    fn claim(&self, aggregate: &AggregateId) -> Result<Claim, ClaimError>;

    /// Claims an aggregate, and appends what is to be written under the claim in the same step: that costs
    /// one sync instead of two. If the append is refused nothing is claimed.
    fn claim_writing(
        &self,
        aggregate: &AggregateId,
        appends: UnderClaim,
    ) -> Result<Result<Claim, AppendError>, ClaimError> {
        let claim = self.claim(aggregate)?;
        let written = self.append(appends(&claim));
        if written.is_err() {
            self.let_go(&claim);
        }
        Ok(written.map(|_| claim))
    }

    /// Who owns an aggregate, if anybody who lives does. Asking changes nothing.
    fn owner(&self, aggregate: &AggregateId) -> Result<Option<Owner>, StoreError>;

    /// Gives a claim up. A claim that no longer counts is given up already.
    fn release(&self, claim: &Claim) -> Result<(), StoreError>;

    /// As [`Store::release`], without waiting for it. Whoever claims it through this handle afterwards
    /// finds it free; if it cannot be given up, that ends with the handle. During an outage
    /// ([`StoreError::Unreachable`]) it is given up by the time that ends.
    fn let_go(&self, claim: &Claim) {
        drop(self.release(claim));
    }

    /// Asks something of an aggregate's owner. On the disk when it returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the aggregate has no records.
    fn request(&self, aggregate: &AggregateId, bytes: Vec<u8>) -> Result<RequestId, StoreError>;

    /// What was asked of an aggregate and not yet taken, oldest first.
    fn requests(&self, aggregate: &AggregateId) -> Result<Vec<Request>, StoreError>;

    /// Answers everything that an event loop wants to know of its store, without making the loop wait:
    /// `done` is told, and may be on another thread. Cheap while nothing was written, since it is asked in
    /// every round. Questions are answered in the order in which they are asked through one handle.
    ///
    /// The answer to a question also ends an outage of this handle ([`StoreError::Unreachable`]).
    fn ask(&self, question: Question, done: OnFindings);

    /// Saves a state; the one saved before the last may go.
    ///
    /// # Errors
    ///
    /// [`StoreError::AheadOfJournal`] if the journal is not that long.
    fn save_snapshot(
        &self,
        aggregate: &AggregateId,
        at: Version,
        bytes: Vec<u8>,
    ) -> Result<(), StoreError>;

    /// The latest snapshot that can be used. One that cannot is no error.
    fn latest_snapshot(&self, aggregate: &AggregateId) -> Result<Found, StoreError>;

    /// Gives the room of what was removed back, and says how many bytes the store had and has. Others may
    /// read meanwhile, and wait to write. A store that needs none of it answers zeros.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] if others write for too long, or whatever else is wrong.
    fn compact(&self) -> Result<[u64; 2], StoreError> {
        Ok([0, 0])
    }

    /// A number that differs from the last one if anything was written in between, by whomever.
    /// Cheap: an owner asks it often, and looks for requests when it has changed.
    fn pulse(&self) -> Result<u64, StoreError>;
}
