//! The projection of a journal: everything that views need beyond the state for the next decision, such as times,
//! ends, resumes, late results, and which records are about which item.
//!
//! It folds each record beside the [`Job`], in the process that runs the job and in readers. It reads the plan and
//! the texts of the job, and otherwise only state that later records repeat, so the job may be ahead of the record.
//! If the items of a flow are followed, it also reads attributes, rounds and dead letters, so there the job must be
//! at the record.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use undaunted_policy::{Reason, Timestamp};

use super::counters::JobCounters;
use super::history::{Histories, LateEnd};
use super::index::{IndexKeys, RecordIndex};
use crate::event::{Event, ItemEvent, JobEnded, JobEvent, JobResumed, Record, RecordError, StepEvent, codec};
use crate::id::{ItemId, StepId};
use crate::job::{ItemState, Job, SettledItem, StepStage};
use crate::stored::stored;
use crate::workflow::AttributeRole;

stored! {
    /// What only flows need is not saved: the attributes, and the items with their rounds.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Projection {
        pub resumes: Vec<ResumeRecord> = 0,
        pub late: Vec<LateItem> = 1,
        pub steps: BTreeMap<StepId, StepHistory> = 2,
        /// When the attributes of a flow were set, by name.
        #[cbor(skip)]
        pub set_at: BTreeMap<String, Timestamp>,
        pub end: Option<EndRecord> = 3,
        /// The first step that has failed, unless the job was redriven since.
        pub failed: Option<StepId> = 4,
        /// Why the job starts nothing more.
        pub stopping: Option<Reason> = 8 with "codec::maybe_reason" has_nil,
        /// Units of the job's pool that each item has used.
        pub charged: BTreeMap<ItemId, u32> = 9,
        /// Versions of the records that changed the plan or restarted reduce steps.
        pub turns: Vec<u64> = 5,
        pub index: RecordIndex = 6,
        pub counters: JobCounters = 7,
        /// The histories of the items that are followed.
        #[cbor(skip)]
        pub items: Histories,
        /// The rounds of the items of a flow, as the job counts them. They are part of receipt tokens.
        #[cbor(skip)]
        pub rounds: BTreeMap<ItemId, u32>,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ResumeRecord {
        pub at: Timestamp = 0 with "codec::time",
        pub resumed: JobResumed = 1,
        /// Attempts until the next resume, without those of handlers.
        pub attempts: u64 = 2,
    }

    /// An item that ended after its step was complete without it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LateItem {
        pub item: ItemId = 0,
        pub end: LateEnd = 1,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EndRecord {
        pub at: Timestamp = 0 with "codec::time",
        pub reason: Option<Reason> = 1 with "codec::maybe_reason" has_nil,
        pub error: Option<String> = 2,
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct StepHistory {
        pub started: Option<Timestamp> = 0 with "codec::maybe_time" has_nil,
        pub ended: Option<Timestamp> = 1 with "codec::maybe_time" has_nil,
        pub failure: Option<StepFailure> = 2,
        /// All inputs of a flow step, before they are split into items.
        #[cbor(skip)]
        pub inputs: Map<String, Value>,
        /// The error of a flow step that its items failed: that of the first dead letter, else why the job
        /// stopped.
        #[cbor(skip)]
        pub items_error: Option<String>,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum StepFailure {
        /// Its items could not be read.
        Input(String = 0) = 0,
        /// A required attribute can no longer be set.
        Unreachable(String = 0) = 1,
        /// An item has failed, or the job was stopped.
        Items = 2,
        Cancelled = 3,
    }
}

impl Projection {
    /// Keeps the histories of all items.
    pub fn following_all() -> Self {
        Self { items: Histories::of_all(), ..Self::default() }
    }

    /// Everything but the two columns of the index. Only for jobs that are no flows.
    pub fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        codec::put(self, &mut bytes);
        bytes
    }

    pub fn restore(bytes: &[u8], names: Vec<u8>, records: Vec<u8>) -> Result<Self, RecordError> {
        let mut saved: Self = codec::read(bytes)?;
        saved.index.names = IndexKeys(names);
        saved.index.records = IndexKeys(records);
        Ok(saved)
    }

    /// Folds the next record, which the job has applied.
    pub fn take(&mut self, job: &Job, version: u64, record: &Record) {
        self.index.take(version, record);
        self.items.take(job, record);
        self.counters.take(job, record);
        match &record.event {
            Event::Job(event) => self.fold_job_event(job, event, version, record.at),
            Event::Step(event) => self.fold_step_event(job, event, record.at),
            Event::Item(event) => self.fold_item_event(job, event, record.at),
            Event::Breaker(_) => {}
        }
    }

    fn fold_item_event(&mut self, job: &Job, event: &ItemEvent, at: Timestamp) {
        let item = event.item();
        if event.is_charged() && job.pool.is_some() {
            let units = self.charged.entry(item).or_default();
            *units = units.saturating_add(1);
        }
        if let ItemEvent::LateResult(late) = event {
            let end = LateEnd { at, reason: late.reason, counted: late.counted };
            self.late.push(LateItem { item, end });
        } else if let ItemEvent::AttemptStarted(started) = event {
            let counts = job.plan().is_main(started.of.command);
            if let Some(last) = self.resumes.last_mut().filter(|_| counts) {
                last.attempts = last.attempts.saturating_add(1);
            }
            if self.follows_call(job, item)
                && let Some(active) = job.active(item)
            {
                let _ = self.rounds.insert(item, active.round);
            }
        } else if let ItemEvent::Redriven { step, .. } = event {
            if let Some(history) = self.steps.get_mut(step) {
                history.ended = None;
                history.failure = None;
            }
            if self.follows_call(job, item) {
                let round = self.rounds.entry(item).or_default();
                *round = round.saturating_add(1);
            }
        }
    }

    fn fold_job_event(&mut self, job: &Job, event: &JobEvent, version: u64, at: Timestamp) {
        if let Some((_, ended)) = event.ended() {
            // A late result may change how a job has ended, but not when.
            let at = self.end.as_ref().map_or(at, |end| end.at);
            self.end = Some(EndRecord::of(job, ended, at));
        } else if let JobEvent::Resumed(resumed) = event {
            self.resumes.push(ResumeRecord { at, resumed: *resumed, attempts: 0 });
        } else if let JobEvent::Stopping { reason } = event {
            self.stopping = Some(*reason);
        }
        if matches!(event, JobEvent::PolicyChanged { .. } | JobEvent::Redriven { reduce: true }) {
            self.turns.push(version);
        }
        if matches!(event, JobEvent::Redriven { .. }) {
            self.reopen(job);
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
            StepEvent::AttributeSet { name, unused, .. } if *unused != Some(true) => {
                let _ = self.set_at.insert(name.clone(), at);
            }
            StepEvent::ItemsRead { .. }
            | StepEvent::AttributeSet { .. }
            | StepEvent::CompletionReached(_) => {}
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
        let ended = || "the flow failed before the step was done".to_owned();
        dead.or_else(stopped).unwrap_or_else(ended)
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
