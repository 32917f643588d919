//! Saves a job, and loads a saved one.

use std::collections::BTreeMap;
use std::sync::Arc;

use minicbor::{Decoder, Encoder};
use serde_json::Value;
use undaunted_policy::{Pool, PoolLimits, Ticket, Timestamp};

use super::super::complete::JobFailures;
use super::super::item::ItemScope;
use super::super::plans::Plans;
use super::super::reservations::ReservedStart;
use super::super::starts::{AttemptStarts, StartPace};
use super::super::state::{Job, JobError, JobStage, JobTimes};
use super::codec::{PutResult, StateEncoder, TakeResult};
use super::items::{ReadPositions, WrittenPositions, put_active, take_active};
use super::{json_map, step};
use crate::event::{EndCounts, Event, ImportedCommand, JobEvent, JobSubmitted, Record, TimeLimit};
use crate::flow::AttributeValue;
use crate::id::{ItemId, StartId, StepId};
use crate::stored::stored;

/// The release, and the number of the form. Raise the number with every change of what is saved or of what
/// an event means.
const MARK: &str = concat!(env!("CARGO_PKG_VERSION"), " 8");

/// Why bytes are not a job saved by this release. The caller reads the journal instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    #[error("it was saved by another release")]
    Another,
    #[error("it cannot be read: {what}")]
    Malformed { what: String },
    #[error(transparent)]
    Job(#[from] JobError),
}

stored! {
    struct SavedJob {
        submitted: JobSubmitted = 0,
        times: JobTimes = 1,
        stage: JobStage = 2,
        rounds: u32 = 3,
        run: u32 = 4,
        next_start: StartId = 5,
        running: BTreeMap<StartId, ItemId> = 6,
        accepted: BTreeMap<StartId, u64> = 7,
        /// Breaker, generation, and whether the attempt is a probe.
        passes: BTreeMap<StartId, (String, u32, bool)> = 8,
        /// Total, share of an item, used.
        pool: Option<(u32, u32, u32)> = 9,
        counts: EndCounts = 10,
        scope: ItemScope = 11,
        attributes: BTreeMap<String, Value> = 12 with "json_map",
        /// The steps that produced the attributes.
        producers: BTreeMap<String, StepId> = 13,
        texts: Vec<String> = 14,
        imported: Vec<ImportedCommand> = 15,
        failures: JobFailures = 16,
        /// End and limit.
        limits: BTreeMap<StartId, (u64, TimeLimit)> = 17,
        pace: Option<StartPace> = 18,
        correlations: BTreeMap<String, String> = 19,
        reserved: BTreeMap<StartId, (ItemId, u64)> = 20,
    }
}

impl Job {
    /// Must not be called between the records of one decision.
    pub fn save(&self) -> Vec<u8> {
        self.snapshot(false)
    }

    /// As [`Job::save`], without the names and values of the items of maps, which are most of a large job. A
    /// process that only shows the job reads the ones it needs from the journal and adds them with
    /// [`Items::learn`](crate::job::Items::learn).
    pub fn snapshot_without_inputs(&self) -> Vec<u8> {
        self.snapshot(true)
    }

    fn snapshot(&self, without_inputs: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory cannot fail.
        let _ = self.put(without_inputs, &mut Encoder::new(&mut bytes));
        bytes
    }

    fn put(&self, without_inputs: bool, to: &mut StateEncoder<'_>) -> PutResult {
        to.str(MARK)?.encode(self.saved())?;
        let mut positions = WrittenPositions::default();
        to.encode(u32::try_from(self.steps.len()).unwrap_or(u32::MAX))?;
        for (number, state) in StepId::all().zip(&self.steps) {
            step::put(state, &mut positions, without_inputs && self.plan.is_map(number), to)?;
        }
        to.encode(u32::try_from(self.dead.len()).unwrap_or(u32::MAX))?;
        for (item, dead) in &self.dead {
            to.u32(item.step.0)?.u32(item.index)?;
            put_active(dead, &mut positions, to)?;
        }
        Ok(())
    }

    fn saved(&self) -> SavedJob {
        // Names every field, so that a new one is not forgotten here.
        let Self {
            submitted,
            times,
            stage,
            rounds,
            run,
            starts,
            pool,
            counts,
            scope,
            attributes,
            texts,
            imported,
            correlations,
            failures,
            // Never there between decisions.
            succeeded_before: _,
            // Derived, not recorded, or saved separately.
            plan: _,
            open: _,
            shared_positions: _,
            id: _,
            steps: _,
            dead: _,
        } = self;
        let AttemptStarts { next, running, reserved, accepted, passes, limits, pace } = starts;
        let reserved = reserved.iter().map(|(start, it)| (*start, (it.item, it.at.as_nanos())));
        let passes = passes.iter().map(|(start, (breaker, ticket))| {
            let pass = (breaker.to_string(), ticket.generation(), ticket.probe);
            (*start, pass)
        });
        let accepted = accepted.iter().map(|(start, until)| (*start, until.as_nanos()));
        let limits = limits.iter().map(|(start, (end, limit))| (*start, (end.as_nanos(), *limit)));
        let values = attributes.iter().map(|(name, attribute)| (name.clone(), attribute.value.clone()));
        let producers = attributes.iter();
        let producers = producers.filter_map(|(name, attribute)| Some((name.clone(), attribute.step?)));
        SavedJob {
            submitted: (**submitted).clone(),
            times: *times,
            stage: *stage,
            rounds: *rounds,
            run: *run,
            next_start: *next,
            running: running.clone(),
            accepted: accepted.collect(),
            passes: passes.collect(),
            pool: pool.map(|pool| (pool.limits.total, pool.limits.per_item, pool.consumed)),
            counts: *counts,
            scope: scope.clone(),
            attributes: values.collect(),
            producers: producers.collect(),
            texts: texts.iter().map(str::to_owned).collect(),
            imported: imported.values().cloned().collect(),
            failures: failures.clone(),
            limits: limits.collect(),
            pace: *pace,
            correlations: correlations.clone(),
            reserved: reserved.collect(),
        }
    }

    pub fn restore(bytes: &[u8], plans: &Plans) -> Result<Self, SavedError> {
        let mut from = Decoder::new(bytes);
        if from.str().ok() != Some(MARK) {
            return Err(SavedError::Another);
        }
        let malformed = |error: minicbor::decode::Error| SavedError::Malformed { what: error.to_string() };
        let saved: SavedJob = from.decode().map_err(malformed)?;
        let mut job = saved.begin(plans)?;
        job.take_steps(&mut from).map_err(malformed)?;
        if from.position() < bytes.len() {
            return Err(SavedError::Malformed { what: "trailing bytes".to_owned() });
        }
        job.find_open_steps();
        Ok(job)
    }

    fn take_steps(&mut self, from: &mut Decoder<'_>) -> TakeResult<()> {
        let mut positions = ReadPositions::default();
        let count = from.u32()?;
        let steps = (0..count).map(|_| step::take(from, &mut positions));
        self.steps = steps.collect::<TakeResult<_>>()?;
        for _ in 0..from.u32()? {
            let item = StepId(from.u32()?).item(from.u32()?);
            let dead = take_active(from, &mut positions)?;
            self.dead.insert(item, Box::new(dead));
        }
        for ReservedStart { item, .. } in self.starts.reserved.values() {
            if let Some(state) = self.steps.get_mut(item.step.position()) {
                state.reserved.insert(item.index);
            }
        }
        for position in &positions.0 {
            self.shared_positions.add(position);
        }
        Ok(())
    }
}

impl SavedJob {
    fn begin(self, plans: &Plans) -> Result<Job, JobError> {
        let mut job = Job::begin_with_plans(
            &Record {
                at: self.times.submitted_at,
                event: Event::Job(JobEvent::Submitted(Box::new(self.submitted))),
            },
            plans,
        )?;
        (job.times, job.stage, job.failures) = (self.times, self.stage, self.failures);
        (job.rounds, job.run, job.starts.next) = (self.rounds, self.run, self.next_start);
        (job.starts.running, job.starts.pace) = (self.running, self.pace);
        let accepted = self.accepted.into_iter();
        let accepted = accepted.map(|(start, until)| (start, Timestamp::from_nanos(until)));
        job.starts.accepted = accepted.collect();
        let limits = self.limits.into_iter();
        let limits = limits.map(|(start, (end, limit))| (start, (Timestamp::from_nanos(end), limit)));
        job.starts.limits = limits.collect();
        for (start, (breaker, generation, probe)) in self.passes {
            let pass = (Arc::from(breaker), Ticket::restored(generation, probe));
            job.starts.passes.insert(start, pass);
        }
        job.pool = self
            .pool
            .map(|(total, per_item, consumed)| Pool { limits: PoolLimits { total, per_item }, consumed });
        (job.counts, job.scope) = (self.counts, self.scope);
        let attributes = self.attributes.into_iter().map(|(name, value)| {
            let step = self.producers.get(&name).copied();
            (name, AttributeValue { value, step })
        });
        job.attributes = attributes.collect();
        for text in &self.texts {
            job.texts.keep(text);
        }
        job.import(self.imported, &[]);
        job.correlations = self.correlations;
        let reserved = self.reserved.into_iter();
        let reserved = reserved
            .map(|(start, (item, at))| (start, ReservedStart { item, at: Timestamp::from_nanos(at) }));
        job.starts.reserved = reserved.collect();
        Ok(job)
    }
}
