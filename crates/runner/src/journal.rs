//! Jobs in a store: reading, claiming and submitting them.

use undaunted_engine::decide::{Reaction, react};
use undaunted_engine::event::{Event, JobEvent, JobSubmitted, Record, RecordError};
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, JobError, Plans};
use undaunted_policy::Timestamp;
use undaunted_store::{
    AggregateId, Append, AppendError, Claim, ClaimError, Store, StoreError, UnderClaim, Version,
};

use crate::breakers;
pub use crate::stored_job::StoredJob;
use crate::stored_job::snapshot_bytes;

pub const FAMILY: &str = "job";

#[derive(Debug)]
pub struct ClaimedJob {
    pub job: Job,
    pub(crate) claim: Claim,
    pub(crate) version: Version,
    /// The version of its latest snapshot, and the size of the snapshot in bytes.
    pub(crate) saved: (Version, usize),
    pub(crate) is_new: bool,
    /// Events recorded with its submission.
    pub(crate) with_it: Vec<Record>,
    /// An input for the job before it runs.
    pub first: Option<Input>,
}

impl ClaimedJob {
    pub fn unclaim(self, store: &dyn Store) -> Job {
        store.unclaim_in_background(&self.claim);
        self.job
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    #[error("job `{job}` not found")]
    NotFound { job: String },
    #[error("record {version} of job {job} is not a valid event: {why}")]
    Record { job: String, version: Version, why: RecordError },
    #[error("breaker `{breaker}` not found")]
    NoBreaker { breaker: String },
    #[error("record {version} of breaker `{breaker}` is not valid: {why}")]
    BreakerRecord { breaker: String, version: Version, why: RecordError },
    #[error("record {version} of the catalog is not valid: {why}")]
    CatalogRecord { version: Version, why: RecordError },
    #[error("cannot write the catalog: {why}")]
    CatalogWriter { why: String },
    #[error("cannot use the journal of job {job}: {why}")]
    Job { job: String, why: JobError },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl JournalError {
    pub const fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error)
            | Self::Claim(ClaimError::Store(error))
            | Self::Append(AppendError::Store(error)) => Some(error),
            _ => None,
        }
    }

    /// The store's error, if it is an outage: the same call may succeed later.
    pub fn outage(&self) -> Option<&StoreError> {
        self.of_store().filter(|error| error.is_outage())
    }
}

pub fn aggregate(job: &str) -> Result<AggregateId, JournalError> {
    AggregateId::new(FAMILY, job).map_err(|_| not_found(job))
}

pub(crate) fn not_found(job: &str) -> JournalError {
    let job = job.to_owned();
    JournalError::NotFound { job }
}

/// The job after its first record.
pub fn begin(job: &str, record: &Record, plans: &Plans) -> Result<Job, JournalError> {
    Job::begin_with_plans(record, plans).map_err(|why| JournalError::Job { job: job.to_owned(), why })
}

/// Calls `each` with the job after every record of its journal, up to the first record that cannot be
/// read.
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
            state.insert(begin(job, &record, plans)?)
        };
        each(state, version, &record);
        last = version;
    }
    state.map(|state| (state, last)).ok_or_else(|| not_found(job))
}

/// Reads a job by replaying its whole journal.
pub fn load(store: &dyn Store, job: &str, plans: &Plans) -> Result<Job, JournalError> {
    Ok(replay(store, job, plans, |_, _, _| {})?.0)
}

pub fn decode(job: &str, version: Version, bytes: &[u8]) -> Result<Record, JournalError> {
    Record::decode(bytes).map_err(|why| JournalError::Record { job: job.to_owned(), version, why })
}

pub fn claim(store: &dyn Store, job: &str, plans: &Plans) -> Result<ClaimedJob, JournalError> {
    let claim = claim_journal(store, job)?;
    let read = StoredJob::read(store, job, plans);
    claimed_job(store, claim, read)
}

/// Claims a job that was read before, and reads the records written since then.
pub fn claim_known(store: &dyn Store, known: StoredJob) -> Result<ClaimedJob, JournalError> {
    let claim = claim_journal(store, known.job.id())?;
    let read = known.brought_up_to_date(store, &Plans::default());
    claimed_job(store, claim, read)
}

/// Refuses a journal without records.
fn claim_journal(store: &dyn Store, job: &str) -> Result<Claim, JournalError> {
    let aggregate = aggregate(job)?;
    if store.head(&aggregate)?.is_none_or(|head| head.version == Version::default()) {
        return Err(not_found(job));
    }
    Ok(store.claim(&aggregate)?)
}

fn claimed_job(
    store: &dyn Store,
    claim: Claim,
    read: Result<StoredJob, JournalError>,
) -> Result<ClaimedJob, JournalError> {
    // On an error the claim is released, so that a repair can claim the job.
    let known = read.inspect_err(|_| store.unclaim_in_background(&claim))?;
    Ok(ClaimedJob {
        job: known.job,
        version: known.version,
        saved: known.saved,
        claim,
        with_it: Vec::new(),
        is_new: false,
        first: None,
    })
}

/// Writes the first record of a job and claims the job. Fails if the name is in use.
pub fn submit(
    store: &dyn Store,
    submitted: JobSubmitted,
    plans: &Plans,
    now: Timestamp,
) -> Result<ClaimedJob, JournalError> {
    let claim_writing = |aggregate: &_, appends| store.claim_writing(aggregate, appends);
    submit_with(store, submitted, &[], plans, now, claim_writing)
}

/// Like [`submit`], for a caller that runs the job at once: the submission is on disk when the first start is, or
/// some milliseconds later.
pub fn submit_ahead(
    store: &dyn Store,
    submitted: JobSubmitted,
    plans: &Plans,
    now: Timestamp,
) -> Result<ClaimedJob, JournalError> {
    let claim_writing = |aggregate: &_, appends| store.claim_writing_ahead(aggregate, appends);
    submit_with(store, submitted, &[], plans, now, claim_writing)
}

/// Claims a job and writes the beginning of its journal in one append: the submission, events that are known
/// already, and the settings of breakers.
fn submit_with(
    store: &dyn Store,
    submitted: JobSubmitted,
    known: &[Event],
    plans: &Plans,
    now: Timestamp,
    claim_writing: impl FnOnce(&AggregateId, UnderClaim) -> Result<Result<Claim, AppendError>, ClaimError>,
) -> Result<ClaimedJob, JournalError> {
    let name = submitted.job.clone();
    let aggregate = aggregate(&name)?;
    let record = |event| Record { at: now, event };
    let submission = record(Event::Job(JobEvent::Submitted(Box::new(submitted))));
    let mut job = begin(&name, &submission, plans)?;
    let (breakers, changes) = breakers::configure(store, &name, job.plan(), now)?;
    let with_it: Vec<Record> = known.iter().cloned().chain(changes).map(record).collect();
    for record in &with_it {
        job.apply(record);
    }
    let records: Vec<Vec<u8>> = [&submission].into_iter().chain(&with_it).map(Record::encode).collect();
    let version = Version::EMPTY.after(records.len());
    let appends = move |claim: &Claim| {
        let (of, first) = (claim.aggregate.clone(), Version::EMPTY);
        let own = Append::new(of, first, claim.epoch, records.clone());
        [own].into_iter().chain(breakers.clone()).collect()
    };
    let claim = claim_writing(&aggregate, Box::new(appends))??;
    Ok(ClaimedJob { job, claim, version, with_it, saved: Default::default(), is_new: true, first: None })
}

/// Records an input without effects for a claimed job, and ends the claim.
pub fn record_input(
    store: &dyn Store,
    claimed: ClaimedJob,
    input: &Input,
    now: Timestamp,
) -> Result<Job, JournalError> {
    let ClaimedJob { mut job, claim, version, .. } = claimed;
    // An input without effects has no reports for breakers.
    let Reaction { records, .. } = react(&mut job, input, now);
    let records: Vec<_> = records.iter().map(Record::encode).collect();
    if !records.is_empty() {
        let append = Append::new(claim.aggregate.clone(), version, claim.epoch, records);
        store.append(vec![append])?;
    }
    store.unclaim(&claim)?;
    Ok(job)
}

pub fn remove(store: &dyn Store, claimed: &ClaimedJob) -> Result<(), JournalError> {
    store.remove(&claimed.claim.aggregate, claimed.claim.epoch)?;
    Ok(())
}

/// A snapshot of fewer bytes saves no time.
const SMALL_SNAPSHOT: usize = 1 << 16;

/// Writes a job without running it: its submission and events that are known already, in one append. Fails if
/// the name is in use. A large job gets a snapshot, so that resuming it does not read those events.
pub fn deposit(
    store: &dyn Store,
    submitted: JobSubmitted,
    known: &[Event],
    now: Timestamp,
) -> Result<(), JournalError> {
    let claim_writing = |aggregate: &_, appends| store.claim_writing(aggregate, appends);
    let claimed = submit_with(store, submitted, known, &Plans::default(), now, claim_writing)?;
    if let Some(last) = claimed.with_it.last() {
        let bytes = snapshot_bytes(&claimed.job, &last.encode());
        if bytes.len() >= SMALL_SNAPSHOT {
            // Without a snapshot, resuming only takes longer.
            drop(store.save_snapshot(&claimed.claim.aggregate, claimed.version, bytes));
        }
    }
    Ok(store.unclaim(&claimed.claim)?)
}
