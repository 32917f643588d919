//! The whole of a job.

use std::collections::BTreeMap;
use std::sync::Arc;

use minicbor::{Decode, Decoder, Encode, Encoder};
use serde_json::Value;
use undaunted_policy::{Pool, PoolLimits, Reason, Ticket, Timestamp};

use super::super::item::Scope;
use super::super::plans::Plans;
use super::super::state::{Job, JobError, Mishap, Stage};
use super::super::texts::Texts;
use super::active::{self, Read, Written};
use super::form::{Put, Take, To};
use super::{json_map, step};
use crate::event::{Counts, Event, ImportedCommand, Record, Submitted, codec};
use crate::flow::Given;

/// What a saved job begins with: the release that wrote it and the number of the form, which grows
/// with every change of what is saved or of what an event means.
const MARK: &str = concat!(env!("CARGO_PKG_VERSION"), " 1");

/// Why bytes are not a job that was saved by this release. Its journal is read instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// Another release saved it, or nobody did.
    #[error("another release saved it")]
    Another,
    /// It cannot be read.
    #[error("it cannot be read: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
    },
    /// Its workflow is not one for this release.
    #[error(transparent)]
    Job(#[from] JobError),
}

/// Everything about a job but its steps and dead letters.
#[derive(Encode, Decode)]
struct Whole {
    #[n(0)]
    submitted: Submitted,
    /// When it was submitted, changed last, run last and gone on with.
    #[n(1)]
    times: [u64; 4],
    #[n(2)]
    stage: Stage,
    #[n(3)]
    rounds: u32,
    #[n(4)]
    run: u32,
    #[n(5)]
    next_start: u64,
    #[n(6)]
    running: BTreeMap<u64, (u32, u32)>,
    #[n(7)]
    accepted: BTreeMap<u64, u64>,
    /// Breaker, generation, and whether the attempt is a probe.
    #[n(8)]
    passes: BTreeMap<u64, (String, u32, bool)>,
    /// Total, share of an item, used.
    #[n(9)]
    pool: Option<(u32, u32, u32)>,
    #[n(10)]
    counts: Counts,
    #[n(11)]
    scope: Scope,
    #[n(12)]
    #[cbor(with = "json_map")]
    attributes: BTreeMap<String, Value>,
    /// The steps that gave them.
    #[n(13)]
    givers: BTreeMap<String, u32>,
    #[n(14)]
    texts: Vec<String>,
    #[n(15)]
    paused: Option<u64>,
    #[n(16)]
    imported: Vec<ImportedCommand>,
    #[n(17)]
    #[cbor(with = "codec::maybe_reason", has_nil)]
    stopped: Option<Reason>,
    #[n(18)]
    failure: Option<Mishap>,
    #[n(19)]
    recovered: Option<Mishap>,
}

impl Job {
    /// The job as bytes. Not between the records of one decision.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory cannot fail.
        let _ = self.put(&mut Encoder::new(&mut bytes));
        bytes
    }

    fn put(&self, to: &mut To<'_>) -> Put {
        to.str(MARK)?.encode(self.whole())?;
        let mut written = Written::default();
        to.encode(u32::try_from(self.steps.len()).unwrap_or(u32::MAX))?;
        for state in &self.steps {
            step::put(state, &mut written, to)?;
        }
        to.encode(u32::try_from(self.dead.len()).unwrap_or(u32::MAX))?;
        for (&(of, item), dead) in &self.dead {
            to.u32(of)?.u32(item)?;
            active::put(dead, &mut written, to)?;
        }
        Ok(())
    }

    fn whole(&self) -> Whole {
        // All its parts are named, so that one that is added is not forgotten here.
        let Self {
            submitted,
            submitted_at,
            last_at,
            run_until,
            stage,
            rounds,
            run,
            resumed_at,
            next_start,
            running,
            accepted,
            passes,
            pool,
            counts,
            scope,
            attributes,
            texts,
            paused,
            imported,
            stopped,
            failure,
            recovered,
            // These follow from the others, are not on record, or are saved by themselves.
            plan: _,
            open: _,
            alike: _,
            id: _,
            steps: _,
            dead: _,
        } = self;
        let times = [*submitted_at, *last_at, *run_until, *resumed_at];
        let passes = passes.iter().map(|(start, (breaker, ticket))| {
            let pass = (breaker.to_string(), ticket.generation(), ticket.probe);
            (*start, pass)
        });
        let until = accepted.iter();
        let until = until.map(|(start, until)| (*start, until.as_nanos()));
        let values = attributes.iter();
        let values = values.map(|(name, given)| (name.clone(), given.value.clone()));
        let givers = attributes.iter();
        let givers = givers.filter_map(|(name, given)| Some((name.clone(), given.step?)));
        Whole {
            submitted: (**submitted).clone(),
            times: times.map(Timestamp::as_nanos),
            stage: *stage,
            rounds: *rounds,
            run: *run,
            next_start: *next_start,
            running: running.clone(),
            accepted: until.collect(),
            passes: passes.collect(),
            pool: pool.map(|pool| (pool.limits.total, pool.limits.per_item, pool.consumed)),
            counts: *counts,
            scope: scope.clone(),
            attributes: values.collect(),
            givers: givers.collect(),
            texts: texts.iter().map(str::to_owned).collect(),
            paused: paused.map(Timestamp::as_nanos),
            imported: imported.values().cloned().collect(),
            stopped: *stopped,
            failure: failure.clone(),
            recovered: recovered.clone(),
        }
    }

    /// The job that was saved.
    ///
    /// # Errors
    ///
    /// [`SavedError`]
    pub fn restore(bytes: &[u8], plans: &Plans) -> Result<Self, SavedError> {
        let mut from = Decoder::new(bytes);
        if from.str().ok() != Some(MARK) {
            return Err(SavedError::Another);
        }
        let malformed = |error: minicbor::decode::Error| SavedError::Malformed {
            what: error.to_string(),
        };
        let whole: Whole = from.decode().map_err(malformed)?;
        let mut job = whole.begin(plans)?;
        job.take_steps(&mut from).map_err(malformed)?;
        job.find_open();
        Ok(job)
    }

    fn take_steps(&mut self, from: &mut Decoder<'_>) -> Take<()> {
        let mut read = Read::default();
        let many = from.u32()?;
        let steps = (0..many).map(|_| step::take(from, &mut read));
        self.steps = steps.collect::<Take<_>>()?;
        for _ in 0..from.u32()? {
            let place = (from.u32()?, from.u32()?);
            let dead = active::take(from, &mut read)?;
            self.dead.insert(place, Box::new(dead));
        }
        for standing in &read.0 {
            self.alike.meet(standing);
        }
        Ok(())
    }
}

impl Whole {
    /// The job, without its steps.
    fn begin(self, plans: &Plans) -> Result<Job, JobError> {
        let [submitted_at, last_at, run_until, resumed_at] = self.times.map(Timestamp::from_nanos);
        let mut job = Job::begin_sharing(
            &Record {
                at: submitted_at,
                event: Event::JobSubmitted(Box::new(self.submitted)),
            },
            plans,
        )?;
        (job.last_at, job.run_until, job.resumed_at) = (last_at, run_until, resumed_at);
        (job.stage, job.stopped) = (self.stage, self.stopped);
        (job.rounds, job.run, job.next_start) = (self.rounds, self.run, self.next_start);
        job.running = self.running;
        let accepted = self.accepted.into_iter();
        let accepted = accepted.map(|(start, until)| (start, Timestamp::from_nanos(until)));
        job.accepted = accepted.collect();
        for (start, (breaker, generation, probe)) in self.passes {
            let pass = (Arc::from(breaker), Ticket::restored(generation, probe));
            job.passes.insert(start, pass);
        }
        job.pool = self.pool.map(|(total, per_item, consumed)| Pool {
            limits: PoolLimits { total, per_item },
            consumed,
        });
        (job.counts, job.scope) = (self.counts, self.scope);
        let given = self.attributes.into_iter().map(|(name, value)| {
            let step = self.givers.get(&name).copied();
            (name, Given { value, step })
        });
        job.attributes = given.collect();
        job.texts = self.texts.iter().fold(Texts::default(), |mut all, text| {
            all.keep(text);
            all
        });
        job.paused = self.paused.map(Timestamp::from_nanos);
        job.import(&self.imported);
        (job.failure, job.recovered) = (self.failure, self.recovered);
        Ok(job)
    }
}
