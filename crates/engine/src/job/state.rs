//! The whole of a job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Ceilings, CompletionRule, Pool, PoolLimits, Reason, Seed, Timestamp};

use super::alike::Alike;
use super::item::{Active, Item, Scope};
use super::mishaps::Mishaps;
use super::open::OpenSteps;
use super::plans::Plans;
use super::starts::Starts;
use super::step::{StepStage, StepState};
use super::texts::Texts;
use super::times::Times;
use crate::event::{
    Counts, Event, FlowRun, ImportedCommand, JobEvent, Record, Submitted, WorkflowText, codec,
};
use crate::flow::{Given, Readiness, readiness};
use crate::id::{CommandId, ItemId, StepId};
use crate::plan::Plan;
use crate::workflow::{Checked, Mode, Operator, Severity, Source, Workflow, check_aimed};

/// A job: what its journal comes to.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) id: Arc<str>,
    pub(crate) submitted: Arc<Submitted>,
    pub(crate) plan: Arc<Plan>,
    pub times: Times,
    /// How far it has come.
    pub stage: Stage,
    /// Its steps, in the order of the workflow.
    pub steps: Vec<StepState>,
    /// Which of them something can happen to: those at work, and those that may begin.
    pub(crate) open: OpenSteps,
    /// How many rounds an item may have had: one more than it was redriven.
    pub rounds: u32,
    /// Which run this is; the first is 1.
    pub run: u32,
    pub starts: Starts,
    pub pool: Option<Pool>,
    /// Attempts, retries and delays.
    pub counts: Counts,
    /// What commands outside a map have left for later ones.
    pub scope: Scope,
    /// What the steps of a flow are connected by, by name.
    pub attributes: BTreeMap<String, Given>,
    /// Texts that events refer to.
    pub texts: Texts,
    /// Where items stand that others may stand too.
    pub(crate) alike: Alike,
    /// Dead letters as they were when they failed, by step and place in the input.
    pub dead: BTreeMap<ItemId, Box<Active>>,
    /// Commands that were tried before the job was made and whose turn has not come, by their
    /// number and the name of the item.
    pub imported: BTreeMap<(CommandId, String), ImportedCommand>,
    pub mishaps: Mishaps,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Stage {
    #[n(0)]
    Running,
    /// Nothing new is started, because of this.
    #[n(1)]
    Stopping(
        #[n(0)]
        #[cbor(with = "codec::reason")]
        Reason,
    ),
    /// It was left in good order.
    #[n(2)]
    Suspended,
    #[n(3)]
    Completed,
    /// It is done, with dead letters.
    #[n(4)]
    Partial,
    #[n(5)]
    Failed,
    #[n(6)]
    Cancelled,
}

/// Why a journal is not a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// It does not begin with a submission.
    #[error("its first record is no submission")]
    NoSubmission,
    /// Its workflow is refused by this release.
    #[error("its workflow is not one for this release: {why}")]
    Workflow {
        /// The first thing that is wrong with it.
        why: String,
    },
}

impl Stage {
    /// Whether nothing more can happen.
    pub const fn has_ended(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Partial | Self::Failed | Self::Cancelled
        )
    }
}

impl Job {
    /// A job from the first record of its journal.
    pub fn begin(record: &Record) -> Result<Self, JobError> {
        Self::begin_sharing(record, &Plans::default())
    }

    /// The same, with a plan that other jobs may have too.
    pub fn begin_sharing(record: &Record, plans: &Plans) -> Result<Self, JobError> {
        let Event::Job(JobEvent::Submitted(submitted)) = &record.event else {
            return Err(JobError::NoSubmission);
        };
        let plan = plans.of(submitted)?;
        let steps = plan.workflow().steps.iter().map(|_| StepState::default());
        let pool = submitted
            .pool
            .map(|(total, per_item)| Pool::new(PoolLimits { total, per_item }));
        let mut job = Self {
            open: OpenSteps::default(),
            steps: steps.collect(),
            id: submitted.job.as_str().into(),
            // Not the plan that was made for it, if other jobs have the same.
            submitted: Arc::new(Submitted {
                text: WorkflowText::checked(submitted.text.shared(), Arc::clone(&plan)),
                ..(**submitted).clone()
            }),
            plan,
            times: Times::submitted(record.at),
            stage: Stage::Running,
            rounds: 1,
            run: 1,
            starts: Starts::default(),
            pool,
            counts: Counts::default(),
            scope: Scope::default(),
            attributes: BTreeMap::new(),
            texts: Texts::default(),
            alike: Alike::default(),
            dead: BTreeMap::new(),
            imported: BTreeMap::new(),
            mishaps: Mishaps::default(),
        };
        job.begin_flow();
        job.find_open();
        Ok(job)
    }

    /// What it was made of.
    pub fn submitted(&self) -> &Submitted {
        &self.submitted
    }

    /// Its name on the command line and in the store.
    pub fn id(&self) -> &str {
        &self.submitted.job
    }

    /// The same, shared with those that keep it.
    pub fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    /// Its workflow, laid out.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn workflow(&self) -> &Workflow {
        self.plan.workflow()
    }

    /// Where its jitter comes from.
    pub fn seed(&self) -> Seed {
        Seed(self.submitted.seed)
    }

    /// Whether it stops for this reason.
    pub const fn is_stopping(&self) -> Option<Reason> {
        match self.stage {
            Stage::Stopping(reason) => Some(reason),
            Stage::Running
            | Stage::Suspended
            | Stage::Completed
            | Stage::Partial
            | Stage::Failed
            | Stage::Cancelled => None,
        }
    }

    /// Whether a command of it runs: an attempt, or what gives the items of a map.
    pub fn has_running(&self) -> bool {
        !self.starts.running.is_empty() || self.is_reading_by_command()
    }

    /// Whether a command of it runs here. What others have taken on goes on whoever is there.
    pub fn has_running_here(&self) -> bool {
        self.starts.running.len() > self.starts.accepted.len() || self.is_reading_by_command()
    }

    fn is_reading_by_command(&self) -> bool {
        let reading = |step: &StepState| matches!(step.stage, StepStage::Reading(Some(_)));
        self.open_steps().any(|(_, step)| reading(step))
    }

    /// The instant at which it has to be done.
    pub fn deadline(&self) -> Option<Timestamp> {
        let allowed = self.workflow().deadline?;
        Some(self.times.submitted_at.after(allowed))
    }

    /// A step by its place.
    pub fn step(&self, step: StepId) -> Option<&StepState> {
        self.steps.get(step.position())
    }

    /// An item by its place.
    pub fn item(&self, item: ItemId) -> Option<Item<'_>> {
        self.step(item.step)?.items.get(item.index)
    }

    /// What an item is called; nothing if it is not there.
    pub fn identity(&self, item: ItemId) -> &str {
        let step = self.step(item.step);
        step.map_or("", |step| step.items.identity(item.index))
    }

    /// The value of an item, as JSON.
    pub fn value(&self, item: ItemId) -> &str {
        let step = self.step(item.step);
        step.map_or("null", |step| step.items.input(item.index))
    }

    /// An item that was started and is not settled.
    pub fn active(&self, item: ItemId) -> Option<&Active> {
        self.step(item.step)?.items.active(item.index)
    }

    /// How many items of a step run at a time.
    pub fn parallel(&self, step: StepId) -> u32 {
        let mut widths = self.submitted.parallel.iter();
        let stored = widths.find(|(of, _)| *of == step);
        stored.map_or(1, |(_, width)| (*width).max(1))
    }

    /// How long one item of a step may take.
    pub fn item_limit(&self, step: StepId) -> Option<Duration> {
        self.plan.map(step)?.item_deadline
    }

    /// The instant after which an item may not be tried again.
    pub fn deadline_of(&self, step: StepId, active: &Active) -> Option<Timestamp> {
        self.deadline_for(step, active.command, active.began())
    }

    /// The same for any command of an item whose time began to run then.
    pub(crate) fn deadline_for(
        &self,
        step: StepId,
        command: CommandId,
        began: Option<Timestamp>,
    ) -> Option<Timestamp> {
        // A handler may clean up after an item whose time has run out.
        let is_handler = self.plan.handled_by(command).is_some();
        let own = self.item_limit(step).filter(|_| !is_handler);
        let own = began.zip(own).map(|(began, limit)| began.after(limit));
        own.into_iter().chain(self.deadline()).min()
    }

    /// The steps whose items are counted: those of the map, or all there are.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (StepId, &StepState)> {
        let mode = self.workflow().mode;
        let steps = StepId::all().zip(&self.steps);
        steps.filter(move |(step, _)| match mode {
            Mode::MapReduce => self.plan.is_map(*step),
            Mode::Flow => self.is_planned(*step),
            Mode::Sequence => true,
        })
    }

    /// What it has come to so far.
    pub fn tally(&self) -> Counts {
        let mut counts = self.counts;
        for (number, step) in self.counted() {
            // An item of a list exists before its step begins; those of a map are read first.
            let total = match step.stage {
                StepStage::Skipped => 0,
                _ if self.plan.is_map(number) => step.items.len(),
                // A step of a flow that has not begun is counted once.
                StepStage::Completed | StepStage::Running => step.items.len(),
                _ => step.items.len().max(1),
            };
            counts.total = counts.total.saturating_add(total.into());
            counts.succeeded = counts.succeeded.saturating_add(step.succeeded.into());
            counts.dead = counts.dead.saturating_add(step.dead.into());
            counts.skipped = counts.skipped.saturating_add(step.skipped.into());
        }
        counts
    }

    /// The steps something can happen to, in order. Of many thousand steps in a list that is one.
    pub fn open_steps(&self) -> impl Iterator<Item = (StepId, &StepState)> {
        let open = self.open.steps.iter();
        open.filter_map(|&step| Some((step, self.step(step)?)))
    }

    /// The steps whose items may start: those at work, and those that were complete without some.
    pub fn busy_steps(&self) -> impl Iterator<Item = (StepId, &StepState)> {
        let left = self.open.left.iter();
        let left = left.filter_map(|&step| Some((step, self.step(step)?)));
        let running = |state: &StepState| state.stage == StepStage::Running;
        self.open_steps()
            .filter(move |(_, state)| running(state))
            .chain(left)
    }

    /// Whether the steps a step needs are complete.
    pub(crate) fn may_begin(&self, step: StepId) -> bool {
        if self.workflow().flow.is_some() {
            return readiness(self, step) != Readiness::Waits;
        }
        self.plan.step(step).is_some_and(|found| {
            found.needs.iter().all(|need| {
                self.steps
                    .get(*need)
                    .is_some_and(|needed| needed.stage == StepStage::Completed)
            })
        })
    }
}

impl Job {
    /// What the operator allowed when it was submitted.
    pub fn ceilings(&self) -> Ceilings {
        ceilings(&self.submitted)
    }
}

fn ceilings(submitted: &Submitted) -> Ceilings {
    submitted.ceilings.map_or(Ceilings::DEFAULT, |stored| {
        let (default_total, max_total, default_per_item, max_per_item) = stored;
        Ceilings {
            default_total,
            max_total,
            default_per_item,
            max_per_item,
        }
    })
}

impl Job {
    /// Checks a text that is to replace its workflow, with what the operator had settled when the job
    /// was submitted.
    pub fn check(&self, text: &str) -> Checked {
        check_stored(&self.submitted, text)
    }
}

fn check_stored(submitted: &Submitted, text: &str) -> Checked {
    let operator = Operator {
        ceilings: ceilings(submitted),
        completion: submitted
            .completion
            .map_or_else(CompletionRule::default, |stored| CompletionRule {
                min: stored.min,
                deadline: stored.deadline,
                ..CompletionRule::default()
            }),
        work: submitted.work.unwrap_or_default(),
        // A job that does not say was stored when every origin had one.
        breaker_per_origin: submitted.origin_breakers.unwrap_or(true),
        // Whoever submitted it had them.
        has_functions: true,
        ..Operator::default()
    };
    let source = Source::new(submitted.file.clone(), text.to_owned());
    let aim = submitted.flow.as_ref().map(FlowRun::aim);
    let mut checked = check_aimed(&source, &operator, aim.as_ref());
    if let Some(flow) = checked.workflow.as_mut().and_then(|it| it.flow.as_mut())
        && aim.is_some()
    {
        // It is not part of the plan: many flows may share that.
        flow.init.clear();
    }
    checked
}

/// Checks a text that is stored with a job.
pub(super) fn stored_plan(submitted: &Submitted, text: &str) -> Result<Arc<Plan>, JobError> {
    let checked = check_stored(submitted, text);
    let plan = checked
        .workflow
        .map(|workflow| Arc::new(Plan::new(workflow)));
    plan.ok_or_else(|| JobError::Workflow {
        why: checked
            .diagnostics
            .iter()
            .find(|found| found.code.severity() == Severity::Error)
            .map_or_else(String::new, |found| found.message.clone()),
    })
}
