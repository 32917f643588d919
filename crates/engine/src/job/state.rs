//! [`Job`], and what can be asked of it without changing it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use undaunted_policy::{CompletionRule, Pool, PoolCeilings, PoolLimits, Reason, Seed, Timestamp};

use super::complete::JobFailures;
use super::item::{ActiveItem, ItemScope, ItemState};
use super::open::OpenSteps;
use super::plans::Plans;
use super::shared_positions::SharedPositions;
use super::starts::AttemptStarts;
use super::step::{StepStage, StepState};
use super::texts::TextTable;
use crate::event::{
    EndCounts, Event, FlowRun, ImportedCommand, JobEvent, JobSubmitted, Record, WorkflowText, codec,
};
use crate::flow::{AttributeValue, Readiness, readiness};
use crate::id::{CommandId, ItemId, StepId};
use crate::plan::Plan;
use crate::stored::stored;
use crate::workflow::{CheckedWorkflow, Operator, Severity, Source, Workflow, WorkflowMode, check_accepted};

#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) id: Arc<str>,
    pub(crate) submitted: Arc<JobSubmitted>,
    pub(crate) plan: Arc<Plan>,
    pub times: JobTimes,
    pub stage: JobStage,
    pub steps: Vec<StepState>,
    pub(crate) open: OpenSteps,
    /// One more than the number of redrives.
    pub rounds: u32,
    /// The first run is 1.
    pub run: u32,
    pub starts: AttemptStarts,
    pub pool: Option<Pool>,
    pub counts: EndCounts,
    /// Values that commands outside a map leave for later commands.
    pub scope: ItemScope,
    pub attributes: BTreeMap<String, AttributeValue>,
    pub texts: TextTable,
    pub(crate) shared_positions: SharedPositions,
    /// Dead letters as they were when they failed.
    pub dead: BTreeMap<ItemId, Box<ActiveItem>>,
    /// Commands that were tried before the job was submitted and that their items have not reached.
    pub imported: BTreeMap<(CommandId, String), ImportedCommand>,
    /// Imported correlation ids, by the name of the item.
    pub(crate) correlations: BTreeMap<String, String>,
    /// Items that had succeeded before the import. Empty between decisions.
    pub(crate) succeeded_before: BTreeSet<ItemId>,
    pub failures: JobFailures,
}

stored! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct JobTimes {
        pub submitted_at: Timestamp = 0 with "codec::time",
        pub last_at: Timestamp = 1 with "codec::time",
        /// The last event that only the owner of a running job writes. Requests of operators are recorded at
        /// any time.
        pub run_until: Timestamp = 2 with "codec::time",
        /// When this run began; zero for the first.
        pub resumed_at: Timestamp = 3 with "codec::time",
        pub paused: Option<Timestamp> = 4 with "codec::maybe_time" has_nil,
        /// Cleared by a redrive.
        pub ended_at: Option<Timestamp> = 5 with "codec::maybe_time" has_nil,
        /// The redrive from which the deadline runs, if it had passed before.
        pub deadline_from: Option<Timestamp> = 6 with "codec::maybe_time" has_nil,
        /// The deadline of the job, if it had passed when the settings were changed.
        pub passed: Option<Timestamp> = 7 with "codec::maybe_time" has_nil,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum JobStage {
        Running = 0,
        Stopping(Reason = 0 with "codec::reason") = 1,
        /// Left by its owner while nothing ran; can be resumed.
        Suspended = 2,
        Completed = 3,
        /// Completed with dead letters.
        Partial = 4,
        Failed = 5,
        Cancelled = 6,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    #[error("its first record is not a submission")]
    NoSubmission,
    #[error("this release does not accept its workflow: {why}")]
    Workflow { why: String },
}

impl JobStage {
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Partial | Self::Failed | Self::Cancelled)
    }
}

impl Job {
    pub fn begin(record: &Record) -> Result<Self, JobError> {
        Self::begin_with_plans(record, &Plans::default())
    }

    /// Shares equal plans between jobs.
    pub fn begin_with_plans(record: &Record, plans: &Plans) -> Result<Self, JobError> {
        let Event::Job(JobEvent::Submitted(submitted)) = &record.event else {
            return Err(JobError::NoSubmission);
        };
        let plan = plans.of(submitted)?;
        let steps = plan.workflow().steps.iter().map(|_| StepState::default());
        let pool = submitted.pool.map(|(total, per_item)| Pool::new(PoolLimits { total, per_item }));
        let mut job = Self {
            open: OpenSteps::default(),
            steps: steps.collect(),
            id: submitted.job.as_str().into(),
            // Replaces the plan of the submission by the shared one.
            submitted: Arc::new(JobSubmitted {
                text: WorkflowText::checked(submitted.text.shared(), Arc::clone(&plan)),
                ..(**submitted).clone()
            }),
            plan,
            times: JobTimes {
                submitted_at: record.at,
                last_at: record.at,
                run_until: record.at,
                ..JobTimes::default()
            },
            stage: JobStage::Running,
            rounds: 1,
            run: 1,
            starts: AttemptStarts::default(),
            pool,
            counts: EndCounts::default(),
            scope: ItemScope::default(),
            attributes: BTreeMap::new(),
            texts: TextTable::default(),
            shared_positions: SharedPositions::default(),
            dead: BTreeMap::new(),
            imported: BTreeMap::new(),
            correlations: BTreeMap::new(),
            succeeded_before: BTreeSet::new(),
            failures: JobFailures::default(),
        };
        job.begin_flow();
        job.find_open_steps();
        Ok(job)
    }

    pub fn submitted(&self) -> &JobSubmitted {
        &self.submitted
    }

    /// The name of the job on the command line and in the store.
    pub fn id(&self) -> &str {
        &self.submitted.job
    }

    pub fn shared_id(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn workflow(&self) -> &Workflow {
        self.plan.workflow()
    }

    pub fn seed(&self) -> Seed {
        Seed(self.submitted.seed)
    }

    /// Whether items are found by their names when records are applied or shown, because their state was imported.
    pub fn needs_names(&self) -> bool {
        !self.imported.is_empty() || !self.correlations.is_empty()
    }

    pub const fn is_stopping(&self) -> Option<Reason> {
        if let JobStage::Stopping(reason) = self.stage { Some(reason) } else { None }
    }

    /// Whether an attempt or an input command runs, or may begin at any moment.
    pub fn has_running(&self) -> bool {
        !self.starts.running.is_empty() || !self.starts.reserved.is_empty() || self.is_reading_by_command()
    }

    /// Like [`Self::has_running`], without attempts that other services have accepted: they need no process
    /// of ours.
    pub fn has_running_here(&self) -> bool {
        self.starts.running.len() > self.starts.accepted.len()
            || !self.starts.reserved.is_empty()
            || self.is_reading_by_command()
    }

    fn is_reading_by_command(&self) -> bool {
        self.open_steps().any(|(_, step)| matches!(step.stage, StepStage::Reading(Some(_))))
    }

    pub fn step(&self, step: StepId) -> Option<&StepState> {
        self.steps.get(step.position())
    }

    pub fn item(&self, item: ItemId) -> Option<ItemState<'_>> {
        self.step(item.step)?.items.get(item.index)
    }

    /// Empty if there is no such item.
    pub fn identity(&self, item: ItemId) -> &str {
        let Some(step) = self.step(item.step) else { return "" };
        if self.is_unstarted_command(item.step) && item.index == 0 {
            let command = self.plan.first(item.step).and_then(|first| self.plan.command(first));
            return command.map_or("", |command| &command.id);
        }
        step.items.identity(item.index)
    }

    /// Whether a step is a command of a list whose turn has not come. Its item exists from its turn on.
    pub fn is_unstarted_command(&self, step: StepId) -> bool {
        self.plan.is_one(step) && self.step(step).is_some_and(|state| state.items.is_empty())
    }

    /// As JSON.
    pub fn value(&self, item: ItemId) -> &str {
        let step = self.step(item.step);
        step.map_or("null", |step| step.items.input(item.index))
    }

    pub fn active(&self, item: ItemId) -> Option<&ActiveItem> {
        self.step(item.step)?.items.active(item.index)
    }

    pub fn parallel(&self, step: StepId) -> u32 {
        self.submitted.parallel.iter().find(|(of, _)| *of == step).map_or(1, |(_, width)| (*width).max(1))
    }

    /// The steps whose items are counted: those of the map, or all.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (StepId, &StepState)> {
        let mode = self.workflow().mode;
        let steps = StepId::all().zip(&self.steps);
        steps.filter(move |(step, _)| match mode {
            WorkflowMode::MapReduce => self.plan.is_map(*step),
            WorkflowMode::Flow => self.is_planned(*step),
            WorkflowMode::Sequence => true,
        })
    }

    pub fn tally(&self) -> EndCounts {
        let mut counts = self.counts;
        for (number, step) in self.counted() {
            // The item of a list exists before its step starts; the items of a map are read first.
            let total = match step.stage {
                StepStage::Skipped => 0,
                _ if self.plan.is_map(number) => step.items.len(),
                // A flow step that has not started counts once.
                StepStage::Completed | StepStage::Running => step.items.len(),
                StepStage::Waiting | StepStage::Reading(_) | StepStage::Failed => step.items.len().max(1),
            };
            counts.total = counts.total.saturating_add(total.into());
            counts.succeeded = counts.succeeded.saturating_add(step.succeeded.into());
            counts.dead = counts.dead.saturating_add(step.dead.into());
            counts.skipped = counts.skipped.saturating_add(step.skipped.into());
        }
        counts
    }

    /// The steps that can change, in order. In a list of many thousand steps that is one.
    pub fn open_steps(&self) -> impl Iterator<Item = (StepId, &StepState)> {
        self.open.steps.iter().filter_map(|&step| Some((step, self.step(step)?)))
    }

    /// Steps whose items may start: running ones, and completed ones with unsettled items.
    pub fn busy_steps(&self) -> impl Iterator<Item = (StepId, &StepState)> {
        let left = self.open.left.iter().filter_map(|&step| Some((step, self.step(step)?)));
        let running = |state: &StepState| state.stage == StepStage::Running;
        self.open_steps().filter(move |(_, state)| running(state)).chain(left)
    }

    /// Whether a step is one of [`Self::busy_steps`].
    pub(crate) fn is_busy_step(&self, step: StepId) -> bool {
        let is_running = || self.step(step).is_some_and(|state| state.stage == StepStage::Running);
        (self.open.steps.contains(&step) && is_running()) || self.open.left.contains(&step)
    }

    pub(crate) fn may_begin(&self, step: StepId) -> bool {
        if self.workflow().flow.is_some() {
            return readiness(self, step) != Readiness::Waits;
        }
        self.plan.step(step).is_some_and(|found| {
            found
                .needs
                .iter()
                .all(|need| self.steps.get(*need).is_some_and(|needed| needed.stage == StepStage::Completed))
        })
    }

    pub fn ceilings(&self) -> PoolCeilings {
        ceilings(&self.submitted)
    }

    /// Checks a replacement of the workflow, with the operator's settings at the time of submission.
    pub fn check(&self, text: &str) -> CheckedWorkflow {
        check_stored(&self.submitted, text)
    }
}

fn ceilings(submitted: &JobSubmitted) -> PoolCeilings {
    submitted.ceilings.map_or(PoolCeilings::DEFAULT, |stored| {
        let (default_total, max_total, default_per_item, max_per_item) = stored;
        PoolCeilings { default_total, max_total, default_per_item, max_per_item }
    })
}

fn check_stored(submitted: &JobSubmitted, text: &str) -> CheckedWorkflow {
    let operator = Operator {
        ceilings: ceilings(submitted),
        completion: submitted.completion.map_or_else(CompletionRule::default, |stored| CompletionRule {
            min: stored.min,
            deadline: stored.deadline,
            ..CompletionRule::default()
        }),
        work: submitted.work.unwrap_or_default(),
        // A submission without this field is from before breakers were opt-in: every origin had one.
        breaker_per_origin: submitted.origin_breakers.unwrap_or(true),
        // The process that submitted the job had the functions.
        has_functions: true,
        ..Operator::default()
    };
    let source = Source::new(submitted.file.clone(), text.to_owned());
    let aim = submitted.flow.as_ref().map(FlowRun::aim);
    let mut checked = check_accepted(&source, &operator, aim.as_ref());
    if let Some(flow) = checked.workflow.as_mut().and_then(|it| it.flow.as_mut())
        && aim.is_some()
    {
        // Many flows share the plan, so it must not hold what one flow starts with.
        flow.init.clear();
    }
    checked
}

pub(super) fn stored_plan(submitted: &JobSubmitted, text: &str) -> Result<Arc<Plan>, JobError> {
    let checked = check_stored(submitted, text);
    let plan = checked.workflow.map(|workflow| Arc::new(Plan::new(workflow)));
    plan.ok_or_else(|| JobError::Workflow {
        why: checked
            .diagnostics
            .iter()
            .find(|found| found.code.severity() == Severity::Error)
            .map_or_else(String::new, |found| found.message.clone()),
    })
}
