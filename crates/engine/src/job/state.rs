//! The whole of a job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::shape::WorkDefaults;
use undaunted_policy::{Ceilings, CompletionRule, Pool, PoolLimits, Reason, Seed, Timestamp};

use super::alike::Alike;
use super::gate::Let;
use super::item::{Active, Item, Scope};
use super::open::OpenSteps;
use super::plans::Plans;
use super::step::{StepStage, StepState};
use super::texts::Texts;
use crate::event::{Counts, Event, FlowRun, ImportedCommand, Record, Submitted, Text, codec};
use crate::flow::{Given, Readiness, readiness};
use crate::plan::Plan;
use crate::workflow::{Checked, Mode, Operator, Severity, Source, Workflow, check_aimed};

/// A job: what its journal comes to.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) id: Arc<str>,
    pub(crate) submitted: Arc<Submitted>,
    pub(crate) plan: Arc<Plan>,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// When the last event happened.
    pub last_at: Timestamp,
    /// When the last one happened that only whoever runs it can have written; what somebody asks for
    /// may be written while nobody does.
    pub run_until: Timestamp,
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
    /// When this run began; the beginning of time for the first.
    pub resumed_at: Timestamp,
    /// The number of the next start.
    pub next_start: u64,
    /// Which item each running attempt belongs to, by the number of its start.
    pub running: BTreeMap<u64, (u32, u32)>,
    /// Running attempts whose result comes later, and until when it is waited for.
    pub accepted: BTreeMap<u64, Timestamp>,
    /// What breakers let running attempts through with, by the number of the start.
    pub(crate) passes: BTreeMap<u64, Let>,
    /// The pool.
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
    /// Since when nothing new is started because somebody asked for a pause.
    pub paused: Option<Timestamp>,
    /// Dead letters as they were when they failed, by step and place in the input.
    pub dead: BTreeMap<(u32, u32), Box<Active>>,
    /// Commands that were tried before the job was made and whose turn has not come, by their
    /// number and the name of the item.
    pub imported: BTreeMap<(u32, String), ImportedCommand>,
    /// Why nothing new was started any more, if it came to that.
    pub stopped: Option<Reason>,
    /// The first failure that counts.
    pub failure: Option<Mishap>,
    /// The first command that stopped and whose handler saved it.
    pub recovered: Option<Mishap>,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Stage {
    /// It goes on.
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
    /// It is done.
    #[n(3)]
    Completed,
    /// It is done, with dead letters.
    #[n(4)]
    Partial,
    /// It has failed.
    #[n(5)]
    Failed,
    /// It was cancelled.
    #[n(6)]
    Cancelled,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Mishap {
    /// Why it was not tried again.
    #[n(0)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    /// What people read about it.
    #[n(1)]
    pub error: Text,
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
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Partial | Self::Failed | Self::Cancelled
        )
    }
}

impl Job {
    /// A job from the first record of its journal.
    ///
    /// # Errors
    ///
    /// [`JobError`]
    pub fn begin(record: &Record) -> Result<Self, JobError> {
        Self::begin_sharing(record, &Plans::default())
    }

    /// The same, with a plan that other jobs may have too.
    ///
    /// # Errors
    ///
    /// [`JobError`]
    pub fn begin_sharing(record: &Record, plans: &Plans) -> Result<Self, JobError> {
        let Event::JobSubmitted(submitted) = &record.event else {
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
            plan,
            id: submitted.job.as_str().into(),
            submitted: Arc::new((**submitted).clone()),
            submitted_at: record.at,
            last_at: record.at,
            run_until: record.at,
            stage: Stage::Running,
            rounds: 1,
            run: 1,
            resumed_at: Timestamp::ZERO,
            next_start: 1,
            running: BTreeMap::new(),
            accepted: BTreeMap::new(),
            passes: BTreeMap::new(),
            pool,
            counts: Counts::default(),
            scope: Scope::default(),
            attributes: BTreeMap::new(),
            texts: Texts::default(),
            alike: Alike::default(),
            paused: None,
            dead: BTreeMap::new(),
            imported: BTreeMap::new(),
            stopped: None,
            failure: None,
            recovered: None,
        };
        job.begin_flow();
        job.find_open();
        Ok(job)
    }

    /// What it was made of.
    #[must_use]
    pub fn submitted(&self) -> &Submitted {
        &self.submitted
    }

    /// Its name on the command line and in the store.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.submitted.job
    }

    /// The same, shared with those that keep it.
    #[must_use]
    pub fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    /// Its workflow, laid out.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its workflow.
    #[must_use]
    pub fn workflow(&self) -> &Workflow {
        self.plan.workflow()
    }

    /// Where its jitter comes from.
    #[must_use]
    pub fn seed(&self) -> Seed {
        Seed(self.submitted.seed)
    }

    /// Whether it stops for this reason.
    #[must_use]
    pub const fn is_stopping(&self) -> Option<Reason> {
        match self.stage {
            Stage::Stopping(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether a command of it runs: an attempt, or what gives the items of a map.
    #[must_use]
    pub fn has_running(&self) -> bool {
        !self.running.is_empty() || self.is_reading_by_command()
    }

    /// Whether a command of it runs here. What others have taken on goes on whoever is there.
    #[must_use]
    pub fn has_running_here(&self) -> bool {
        self.running.len() > self.accepted.len() || self.is_reading_by_command()
    }

    fn is_reading_by_command(&self) -> bool {
        let reading = |step: &StepState| matches!(step.stage, StepStage::Reading(Some(_)));
        self.open_steps().any(|(_, step)| reading(step))
    }

    /// The instant at which it has to be done.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let allowed = self.workflow().deadline?;
        Some(self.submitted_at.after(allowed))
    }

    /// A step by its place.
    #[must_use]
    pub fn step(&self, step: u32) -> Option<&StepState> {
        self.steps.get(usize::try_from(step).ok()?)
    }

    /// An item by its place.
    #[must_use]
    pub fn item(&self, step: u32, item: u32) -> Option<Item<'_>> {
        self.step(step)?.items.get(item)
    }

    /// An item that was started and is not settled.
    #[must_use]
    pub fn active(&self, step: u32, item: u32) -> Option<&Active> {
        self.step(step)?.items.active(item)
    }

    /// How many items of a step run at a time.
    #[must_use]
    pub fn parallel(&self, step: u32) -> u32 {
        let mut widths = self.submitted.parallel.iter();
        let stored = widths.find(|(of, _)| *of == step);
        stored.map_or(1, |(_, width)| (*width).max(1))
    }

    /// How long one item of a step may take.
    #[must_use]
    pub fn item_limit(&self, step: u32) -> Option<Duration> {
        self.plan.map(step)?.item_deadline
    }

    /// The instant after which an item may not be tried again.
    #[must_use]
    pub fn deadline_of(&self, step: u32, active: &Active) -> Option<Timestamp> {
        self.deadline_for(step, active.command, active.began())
    }

    /// The same for any command of an item whose time began to run then.
    pub(crate) fn deadline_for(
        &self,
        step: u32,
        command: u32,
        began: Option<Timestamp>,
    ) -> Option<Timestamp> {
        // A handler may clean up after an item whose time has run out.
        let is_handler = self.plan.handled_by(command).is_some();
        let own = self.item_limit(step).filter(|_| !is_handler);
        let own = began.zip(own).map(|(began, limit)| began.after(limit));
        own.into_iter().chain(self.deadline()).min()
    }

    /// The steps whose items are counted: those of the map, or all there are.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (u32, &StepState)> {
        let mode = self.workflow().mode;
        let steps = (0_u32..).zip(&self.steps);
        steps.filter(move |(step, _)| match mode {
            Mode::MapReduce => self.plan.is_map(*step),
            Mode::Flow => self.is_planned(*step),
            Mode::Sequence => true,
        })
    }

    /// What it has come to so far.
    #[must_use]
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
    pub fn open_steps(&self) -> impl Iterator<Item = (u32, &StepState)> {
        let open = self.open.steps.iter();
        open.filter_map(|&step| Some((step, self.step(step)?)))
    }

    /// The steps whose items may start: those at work, and those that were complete without some.
    pub fn busy_steps(&self) -> impl Iterator<Item = (u32, &StepState)> {
        let left = self.open.left.iter();
        let left = left.filter_map(|&step| Some((step, self.step(step)?)));
        let running = |state: &StepState| state.stage == StepStage::Running;
        self.open_steps()
            .filter(move |(_, state)| running(state))
            .chain(left)
    }

    /// Whether the steps a step needs are complete.
    pub(crate) fn may_begin(&self, step: u32) -> bool {
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
    #[must_use]
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
    #[must_use]
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
        work: submitted.work.map_or(WorkDefaults::DEFAULT, Into::into),
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

/// Reads the workflow that is stored with a job.
pub(super) fn stored_workflow(submitted: &Submitted, text: &str) -> Result<Workflow, JobError> {
    let checked = check_stored(submitted, text);
    checked.workflow.ok_or_else(|| JobError::Workflow {
        why: checked
            .diagnostics
            .iter()
            .find(|found| found.code.severity() == Severity::Error)
            .map_or_else(String::new, |found| found.message.clone()),
    })
}
