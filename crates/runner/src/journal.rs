//! A job in a store: read, claimed, submitted.

use undaunted_engine::decide::react;
use undaunted_engine::event::{Event, Record, RecordError, Submitted};
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, JobError};
use undaunted_policy::Timestamp;
use undaunted_store::{
    AggregateId, Append, AppendError, Claim, ClaimError, Store, StoreError, Version,
};

/// The family of the journals of jobs.
pub const FAMILY: &str = "job";

/// A job and the right to run it.
#[derive(Debug)]
pub struct Held {
    /// The job, as its journal has it.
    pub job: Job,
    pub(crate) claim: Claim,
    pub(crate) version: Version,
    /// Whether it was submitted just now.
    pub(crate) is_new: bool,
    /// What it is told before it goes on, if anything.
    pub first: Option<Input>,
    /// How many attempts may start in a second, if that is limited.
    pub rate: Option<f64>,
}

/// Why a job cannot be read or claimed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// There is no such job.
    #[error("there is no job `{job}`")]
    NotFound {
        /// What was asked for.
        job: String,
    },
    /// A record of it is not one.
    #[error("record {version} of job {job} is no event: {why}")]
    Record {
        /// The job.
        job: String,
        /// Which record.
        version: Version,
        /// Why.
        why: RecordError,
    },
    /// The records do not make a job.
    #[error("the journal of job {job} cannot be used: {why}")]
    Job {
        /// The job.
        job: String,
        /// Why.
        why: JobError,
    },
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

/// The journal of a job.
///
/// # Errors
///
/// When the name cannot be one of a job.
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
    mut each: impl FnMut(&Job, Version, &Record),
) -> Result<(Job, Version), JournalError> {
    let aggregate = aggregate(job)?;
    let mut state: Option<Job> = None;
    let mut last = Version::default();
    for read in store.read(&aggregate, Version::default())? {
        let (version, bytes) = read?;
        let record = decode(job, version, &bytes)?;
        let state = match &mut state {
            Some(state) => {
                state.apply(&record);
                state
            }
            None => state.insert(Job::begin(&record).map_err(|why| JournalError::Job {
                job: job.to_owned(),
                why,
            })?),
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
///
/// # Errors
///
/// When it is not there, somebody else runs it, or it cannot be read.
pub fn claim(store: &dyn Store, job: &str) -> Result<Held, JournalError> {
    let aggregate = aggregate(job)?;
    if store
        .head(&aggregate)?
        .is_none_or(|head| head.version == Version::default())
    {
        return Err(JournalError::NotFound {
            job: job.to_owned(),
        });
    }
    let claim = store.claim(&aggregate)?;
    let (job, version) = replay(store, job, |_, _, _| {})?;
    Ok(Held {
        job,
        version,
        claim,
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
    now: Timestamp,
) -> Result<Held, JournalError> {
    let name = submitted.job.clone();
    let aggregate = aggregate(&name)?;
    let record = Record {
        at: now,
        event: Event::JobSubmitted(Box::new(submitted)),
    };
    let job = Job::begin(&record).map_err(|why| JournalError::Job { job: name, why })?;
    let claim = store.claim(&aggregate)?;
    let records = vec![record.encode()];
    let append = Append::new(aggregate, Version::default(), claim.epoch, records);
    let version = append.reaches();
    store.append(vec![append])?;
    Ok(Held {
        job,
        claim,
        version,
        is_new: true,
        first: None,
        rate: None,
    })
}

/// Tells a job something that leads to nothing being done, and gives it back.
///
/// # Errors
///
/// When it cannot be written.
pub fn tell(
    store: &dyn Store,
    held: Held,
    input: &Input,
    now: Timestamp,
) -> Result<Job, JournalError> {
    let Held {
        mut job,
        claim,
        version,
        ..
    } = held;
    let records = react(&mut job, input, now);
    let records: Vec<_> = records.iter().map(Record::encode).collect();
    if !records.is_empty() {
        let append = Append::new(claim.aggregate.clone(), version, claim.epoch, records);
        store.append(vec![append])?;
    }
    store.release(&claim)?;
    Ok(job)
}

/// Removes a job that somebody holds.
///
/// # Errors
///
/// When it cannot be removed.
pub fn remove(store: &dyn Store, held: &Held) -> Result<(), JournalError> {
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
    known: Vec<Event>,
    now: Timestamp,
) -> Result<(), JournalError> {
    let aggregate = aggregate(&submitted.job)?;
    let events = std::iter::once(Event::JobSubmitted(Box::new(submitted))).chain(known);
    let records = events.map(|event| Record { at: now, event }.encode());
    let claim = store.claim(&aggregate)?;
    let append = Append::new(
        aggregate,
        Version::default(),
        claim.epoch,
        records.collect(),
    );
    store.append(vec![append])?;
    Ok(store.release(&claim)?)
}
