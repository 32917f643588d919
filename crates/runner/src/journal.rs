//! A job in a store: read, claimed, submitted.

use undaunted_engine::decide::{Reaction, react};
use undaunted_engine::event::{Event, JobEvent, Record, RecordError, Submitted};
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, JobError, Plans};
use undaunted_policy::Timestamp;
use undaunted_store::{
    AggregateId, Append, AppendError, Claim, ClaimError, Store, StoreError, Version,
};

use crate::breakers;
pub use crate::known::Known;

/// The family of the journals of jobs.
pub const FAMILY: &str = "job";

/// A job and the right to run it.
#[derive(Debug)]
pub struct ClaimedJob {
    /// The job, as its journal has it.
    pub job: Job,
    pub(crate) claim: Claim,
    pub(crate) version: Version,
    /// The last record that is part of what was saved of it, and how many bytes that has.
    pub(crate) saved: (Version, usize),
    /// Whether it was submitted just now.
    pub(crate) is_new: bool,
    /// What was recorded with its submission.
    pub(crate) with_it: Vec<Record>,
    /// What it is told before it goes on, if anything.
    pub first: Option<Input>,
    /// How many attempts may start in a second, if that is limited.
    pub rate: Option<f64>,
}

impl ClaimedJob {
    /// Gives the job back without having changed anything.
    pub fn let_go(self, store: &dyn Store) -> Job {
        store.let_go(&self.claim);
        self.job
    }
}

/// Why a job cannot be read or claimed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// There is no such job.
    #[error("there is no job `{job}`")]
    NotFound {
        /// What was asked for.
        job: String,
    },
    #[error("record {version} of job {job} is no event: {why}")]
    Record {
        job: String,
        version: Version,
        why: RecordError,
    },
    /// There is no such breaker.
    #[error("there is no breaker `{breaker}`")]
    NoBreaker {
        /// What was asked for.
        breaker: String,
    },
    #[error("record {version} of the breaker `{breaker}` cannot be used: {why}")]
    BreakerRecord {
        breaker: String,
        version: Version,
        why: RecordError,
    },
    #[error("record {version} of the catalog cannot be used: {why}")]
    CatalogRecord { version: Version, why: RecordError },
    /// There is nobody who writes the catalog.
    #[error("the catalog cannot be written: {why}")]
    CatalogWriter { why: String },
    /// The records do not make a job.
    #[error("the journal of job {job} cannot be used: {why}")]
    Job { job: String, why: JobError },
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else runs it.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// It could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl JournalError {
    /// The error of the store, if the same can be tried again when the store can be reached.
    pub const fn outage(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error)
            | Self::Claim(ClaimError::Store(error))
            | Self::Append(AppendError::Store(error))
                if error.is_outage() =>
            {
                Some(error)
            }
            _ => None,
        }
    }
}

pub fn aggregate(job: &str) -> Result<AggregateId, JournalError> {
    AggregateId::new(FAMILY, job).map_err(|_| JournalError::NotFound {
        job: job.to_owned(),
    })
}

/// Reads the journal of a job record by record, with the job as it is after each.
///
/// # Errors
///
/// [`JournalError`]; everything before the record it is about has been shown.
pub fn replay(
    store: &dyn Store,
    job: &str,
    plans: &Plans,
    mut each: impl FnMut(&Job, Version, &Record),
) -> Result<(Job, Version), JournalError> {
    let aggregate = aggregate(job)?;
    let mut state: Option<Job> = None;
    let mut last = Version::default();
    for read in store.read(&aggregate, Version::default())? {
        let (version, bytes) = read?;
        let record = decode(job, version, &bytes)?;
        let state = if let Some(state) = &mut state {
            state.apply(&record);
            state
        } else {
            let begun = Job::begin_sharing(&record, plans);
            state.insert(begun.map_err(|why| JournalError::Job {
                job: job.to_owned(),
                why,
            })?)
        };
        each(state, version, &record);
        last = version;
    }
    let found = state.map(|state| (state, last));
    found.ok_or_else(|| JournalError::NotFound {
        job: job.to_owned(),
    })
}

/// One record of a journal.
///
/// # Errors
///
/// When it is not one.
pub fn decode(job: &str, version: Version, bytes: &[u8]) -> Result<Record, JournalError> {
    Record::decode(bytes).map_err(|why| JournalError::Record {
        job: job.to_owned(),
        version,
        why,
    })
}

/// Claims a job and reads its journal.
pub fn claim(store: &dyn Store, job: &str, plans: &Plans) -> Result<ClaimedJob, JournalError> {
    let claim = claim_journal(store, job)?;
    let read = Known::read(store, job, plans);
    hold(store, claim, read)
}

/// Claims a job that was read before, and reads what was recorded since.
pub fn claim_known(store: &dyn Store, known: Known) -> Result<ClaimedJob, JournalError> {
    let claim = claim_journal(store, known.job.id())?;
    let read = known.brought_up_to_date(store, &Plans::default());
    hold(store, claim, read)
}

/// Claims a journal that has records.
fn claim_journal(store: &dyn Store, job: &str) -> Result<Claim, JournalError> {
    let aggregate = aggregate(job)?;
    if store
        .head(&aggregate)?
        .is_none_or(|head| head.version == Version::default())
    {
        return Err(JournalError::NotFound {
            job: job.to_owned(),
        });
    }
    Ok(store.claim(&aggregate)?)
}

fn hold(
    store: &dyn Store,
    claim: Claim,
    read: Result<Known, JournalError>,
) -> Result<ClaimedJob, JournalError> {
    if read.is_err() {
        // Whoever repairs it has to have it.
        store.let_go(&claim);
    }
    let known = read?;
    Ok(ClaimedJob {
        job: known.job,
        version: known.version,
        saved: known.saved,
        claim,
        with_it: Vec::new(),
        is_new: false,
        first: None,
        rate: None,
    })
}

/// Writes the first record of a job, and claims it.
///
/// # Errors
///
/// When the store cannot be written, or there is a job of this name.
pub fn submit(
    store: &dyn Store,
    submitted: Submitted,
    plans: &Plans,
    now: Timestamp,
) -> Result<ClaimedJob, JournalError> {
    found(store, submitted, &[], plans, now)
}

/// Claims a job and writes the beginning of its journal: the submission and what else is known, and the
/// settings of breakers, all or nothing.
fn found(
    store: &dyn Store,
    submitted: Submitted,
    known: &[Event],
    plans: &Plans,
    now: Timestamp,
) -> Result<ClaimedJob, JournalError> {
    let name = submitted.job.clone();
    let aggregate = aggregate(&name)?;
    let record = |event| Record { at: now, event };
    let submission = record(Event::Job(JobEvent::Submitted(Box::new(submitted))));
    let begun = Job::begin_sharing(&submission, plans).map_err(|why| JournalError::Job {
        job: name.clone(),
        why,
    })?;
    let (breakers, told) = breakers::configure(store, &name, begun.plan(), now)?;
    let mut job = begun;
    let events = known.iter().cloned().chain(told);
    let with_it: Vec<Record> = events.map(record).collect();
    for record in &with_it {
        job.apply(record);
    }
    let records = [&submission].into_iter().chain(&with_it);
    let records: Vec<Vec<u8>> = records.map(Record::encode).collect();
    let version = Version::EMPTY.after(records.len());
    let under = move |claim: &Claim| {
        let (of, first) = (claim.aggregate.clone(), Version::EMPTY);
        let own = Append::new(of, first, claim.epoch, records.clone());
        [own].into_iter().chain(breakers.clone()).collect()
    };
    let claim = store.claim_writing(&aggregate, Box::new(under))??;
    Ok(ClaimedJob {
        job,
        claim,
        version,
        with_it,
        saved: Default::default(),
        is_new: true,
        first: None,
        rate: None,
    })
}

/// Tells a job something that leads to nothing being done, and gives it back.
pub fn tell(
    store: &dyn Store,
    held: ClaimedJob,
    input: &Input,
    now: Timestamp,
) -> Result<Job, JournalError> {
    let ClaimedJob {
        mut job,
        claim,
        version,
        ..
    } = held;
    // What leads to nothing being done says nothing to breakers.
    let Reaction { records, .. } = react(&mut job, input, now);
    let records: Vec<_> = records.iter().map(Record::encode).collect();
    if !records.is_empty() {
        let append = Append::new(claim.aggregate.clone(), version, claim.epoch, records);
        store.append(vec![append])?;
    }
    store.release(&claim)?;
    Ok(job)
}

/// Removes a job that somebody holds.
pub fn remove(store: &dyn Store, held: &ClaimedJob) -> Result<(), JournalError> {
    store.remove(&held.claim.aggregate, held.claim.epoch)?;
    Ok(())
}

/// Writes a job that nobody runs yet: its submission and what else is known of it, all or nothing.
///
/// # Errors
///
/// When the store cannot be written, or there is a job of this name.
pub fn deposit(
    store: &dyn Store,
    submitted: Submitted,
    known: &[Event],
    now: Timestamp,
) -> Result<(), JournalError> {
    let held = found(store, submitted, known, &Plans::default(), now)?;
    Ok(store.release(&held.claim)?)
}
