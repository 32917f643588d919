//! The projection of a journal: everything that views need beyond the state for the next decision, such as times,
//! ends, resumes, late results, and which records are about which item.
//!
//! It folds each record beside the [`Job`], in the process that runs the job and in readers. It reads the plan and
//! the texts of the job, and otherwise only state that later records repeat, so the job may be ahead of the record.
//! If the items of a flow are followed, it also reads attributes, rounds and dead letters, so there the job must be
//! at the record.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};
use undaunted_policy::{Reason, Timestamp};

use super::counters::JobCounters;
use super::history::{Histories, LateEnd};
use super::index::RecordIndex;
use crate::event::{Event, ItemEvent, JobEnded, JobEvent, JobResumed, Record, StepEvent, codec};
use crate::id::{ItemId, StepId};
use crate::job::{ItemState, Job, SettledItem, StepStage};
use crate::workflow::AttributeRole;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projection {
    pub resumes: Vec<ResumeRecord>,
    pub late: Vec<LateItem>,
    pub steps: BTreeMap<StepId, StepHistory>,
    /// When the attributes of a flow were set, by name.
    pub set_at: BTreeMap<String, Timestamp>,
    pub end: Option<EndRecord>,
    /// The first step that has failed, unless the job was redriven since.
    pub failed: Option<StepId>,
    /// Why the job starts nothing more.
    pub stopping: Option<Reason>,
    /// Units of the job's pool that each item has used.
    pub charged: BTreeMap<ItemId, u32>,
    /// Versions of the records that changed the plan or restarted reduce steps.
    pub turns: Vec<u64>,
    pub index: RecordIndex,
    pub counters: JobCounters,
    /// The histories of the items that are followed.
    pub items: Histories,
    /// The rounds of the items of a flow, as the job counts them. They are part of receipt tokens.
    pub rounds: BTreeMap<ItemId, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ResumeRecord {
    #[n(0)]
    #[cbor(with = "codec::time")]
    pub at: Timestamp,
    #[n(1)]
    pub resumed: JobResumed,
    /// Attempts until the next resume, without those of handlers.
    #[n(2)]
    pub attempts: u64,
}

/// An item that ended after its step was complete without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LateItem {
    #[n(0)]
    pub item: ItemId,
    #[n(1)]
    pub end: LateEnd,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EndRecord {
    #[n(0)]
    #[cbor(with = "codec::time")]
    pub at: Timestamp,
    #[n(1)]
    #[cbor(with = "codec::maybe_reason", has_nil)]
    pub reason: Option<Reason>,
    #[n(2)]
    pub error: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepHistory {
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub failure: Option<StepFailure>,
    /// All inputs of a flow step, before they are split into items.
    pub inputs: Map<String, Value>,
    /// The error of a flow step that its items failed: that of the first dead letter, else why the job stopped.
    pub items_error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum StepFailure {
    /// Its items could not be read.
    #[n(0)]
    Input(#[n(0)] String),
    /// A required attribute can no longer be set.
    #[n(1)]
    Unreachable(#[n(0)] String),
    /// An item has failed, or the job was stopped.
    #[n(2)]
    Items,
    #[n(3)]
    Cancelled,
}

impl Projection {
    /// Keeps the histories of all items.
    pub fn following_all() -> Self {
        Self { items: Histories::of_all(), ..Self::default() }
    }

    /// Folds the next record, which the job has applied.
    pub fn take(&mut self, job: &Job, version: u64, record: &Record) {
        self.index.take(version, record);
        self.items.take(job, record);
        self.counters.take(job, record);
        if let (Event::Item(event), Some(_)) = (&record.event, &job.pool)
            && event.is_charged()
        {
            let units = self.charged.entry(event.item()).or_default();
            *units = units.saturating_add(1);
        }
        match &record.event {
            Event::Job(event) => self.fold_job_event(job, event, version, record.at),
            Event::Step(event) => self.fold_step_event(job, event, record.at),
            Event::Item(ItemEvent::LateResult(late)) => self.late.push(LateItem {
                item: late.item(),
                end: LateEnd { at: record.at, reason: late.reason, counted: late.counted },
            }),
            Event::Item(ItemEvent::AttemptStarted(started)) => {
                let counts = job.plan().is_main(started.of.command);
                if let Some(last) = self.resumes.last_mut().filter(|_| counts) {
                    last.attempts = last.attempts.saturating_add(1);
                }
                let item = started.of.item();
                if self.follows_call(job, item)
                    && let Some(active) = job.active(item)
                {
                    let _ = self.rounds.insert(item, active.round);
                }
            }
            Event::Item(ItemEvent::Redriven { step, index }) => {
                let item = step.item(*index);
                if let Some(history) = self.steps.get_mut(step) {
                    history.ended = None;
                    history.failure = None;
                }
                if self.follows_call(job, item) {
                    let round = self.rounds.entry(item).or_default();
                    *round = round.saturating_add(1);
                }
            }
            Event::Item(
                ItemEvent::AttemptSucceeded(_)
                | ItemEvent::AttemptFailed(_)
                | ItemEvent::AttemptAccepted { .. }
                | ItemEvent::RetryScheduled(_)
                | ItemEvent::CommandStopped(_)
                | ItemEvent::CommandRepeated { .. }
                | ItemEvent::CommandRecovered { .. }
                | ItemEvent::Succeeded { .. }
                | ItemEvent::DeadLettered { .. }
                | ItemEvent::Skipped { .. }
                | ItemEvent::Dropped { .. }
                | ItemEvent::Held(_)
                | ItemEvent::Released(_),
            )
            | Event::Breaker(_) => {}
        }
    }

    fn fold_job_event(&mut self, job: &Job, event: &JobEvent, version: u64, at: Timestamp) {
        match event {
            JobEvent::Completed(ended)
            | JobEvent::Partial(ended)
            | JobEvent::Failed(ended)
            | JobEvent::Cancelled(ended) => self.end = Some(EndRecord::of(job, ended, at)),
            JobEvent::Resumed(resumed) => {
                self.resumes.push(ResumeRecord { at, resumed: *resumed, attempts: 0 });
            }
            JobEvent::Redriven { reduce } => {
                if *reduce {
                    self.turns.push(version);
                }
                self.reopen(job);
            }
            JobEvent::PolicyChanged { .. } => self.turns.push(version),
            JobEvent::Stopping { reason } => self.stopping = Some(*reason),
            JobEvent::Submitted(_)
            | JobEvent::TextKept { .. }
            | JobEvent::Suspended
            | JobEvent::Paused
            | JobEvent::Unpaused { .. }
            | JobEvent::StateImported { .. }
            | JobEvent::PoolToppedUp { .. } => {}
        }
    }

    fn fold_step_event(&mut self, job: &Job, event: &StepEvent, at: Timestamp) {
        let step = event.step();
        match event {
            StepEvent::Started { .. } => {
                let history =
                    StepHistory { started: Some(at), inputs: arguments(job, step), ..StepHistory::default() };
                let _ = self.steps.insert(step, history);
            }
            StepEvent::InputFailed { error, .. } => {
                let failure = match self.stopping {
                    // The command that lists the items was ended.
                    Some(Reason::Cancelled) => StepFailure::Cancelled,
                    _ => StepFailure::Input(job.texts.read(error).to_owned()),
                };
                self.fail(step, at, failure);
            }
            StepEvent::Unreachable { missing, .. } => {
                self.fail(step, at, StepFailure::Unreachable(missing.clone()));
            }
            StepEvent::Failed { .. } => {
                let failure = match self.stopping {
                    Some(Reason::Cancelled) => StepFailure::Cancelled,
                    _ => StepFailure::Items,
                };
                let items_error = job.plan().call(step).map(|_| self.items_error(job, step));
                self.fail(step, at, failure);
                self.steps.entry(step).or_default().items_error = items_error;
            }
            StepEvent::Completed { .. } | StepEvent::Skipped { .. } => {
                let history = self.steps.entry(step).or_default();
                history.ended = Some(at);
                history.failure = None;
            }
            StepEvent::AttributeSet { name, .. } => {
                let _ = self.set_at.insert(name.clone(), at);
            }
            StepEvent::ItemsRead { .. } | StepEvent::CompletionReached(_) => {}
        }
    }

    /// Whether a step ended because the job was cancelled.
    pub fn was_cancelled(&self, step: StepId) -> bool {
        let history = self.steps.get(&step);
        history.is_some_and(|history| history.failure == Some(StepFailure::Cancelled))
    }

    fn fail(&mut self, step: StepId, at: Timestamp, failure: StepFailure) {
        let history = self.steps.entry(step).or_default();
        history.ended = Some(at);
        history.failure = Some(failure);
        let _ = self.failed.get_or_insert(step);
    }

    /// Why the items of a flow step failed it.
    fn items_error(&self, job: &Job, step: StepId) -> String {
        let items = step.item(0)..=step.item(u32::MAX);
        let mut items = self.items.items.range(items);
        let is_dead = |item: ItemId| matches!(job.item(item), Some(ItemState::Settled(SettledItem::Dead(_))));
        let dead = items.find(|(item, _)| is_dead(**item));
        let dead = dead.and_then(|(_, history)| history.error());
        let stopped = || Some(job.failures.stopped?.sentence().to_owned());
        dead.or_else(stopped).unwrap_or_default()
    }

    fn follows_call(&self, job: &Job, item: ItemId) -> bool {
        self.items.items.contains_key(&item) && job.plan().call(item.step).is_some()
    }

    /// After a redrive, ended steps run again.
    fn reopen(&mut self, job: &Job) {
        self.end = None;
        self.failed = None;
        self.stopping = None;
        for (step, history) in &mut self.steps {
            let is_open = job.step(*step).is_some_and(|state| match state.stage {
                StepStage::Waiting | StepStage::Reading(_) | StepStage::Running => true,
                StepStage::Completed | StepStage::Failed | StepStage::Skipped => false,
            });
            if is_open {
                history.ended = None;
                history.failure = None;
            }
        }
    }
}

impl EndRecord {
    fn of(job: &Job, ended: &JobEnded, at: Timestamp) -> Self {
        let error = ended.error.as_ref();
        Self { at, reason: ended.reason, error: error.map(|error| job.texts.read(error).to_owned()) }
    }
}

/// All inputs of a flow step; a `for_each` attribute has its whole list.
fn arguments(job: &Job, step: StepId) -> Map<String, Value> {
    let call = job.plan().call(step);
    let taken = call.into_iter().flat_map(|call| &call.attributes);
    let taken = taken.filter_map(|(name, taken)| {
        let known = match taken.role {
            AttributeRole::Output => return None,
            AttributeRole::Const => None,
            AttributeRole::Required | AttributeRole::Optional => job.attributes.get(name).map(|it| &it.value),
        };
        let value = known.or(taken.default.as_ref())?.clone();
        let inner = taken.mapping.as_ref().unwrap_or(name).clone();
        Some((inner, value))
    });
    taken.collect()
}
