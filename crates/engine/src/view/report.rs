//! The result of a job, in one object.

use std::time::Duration;

use serde::Serialize;
use undaunted_policy::Reason;

use super::time::{DelayView, MillisView};
use crate::event::{CompletionReached, EndCounts};
use crate::id::{CommandId, ItemId};
use crate::job::{ItemState, Job, JobStage, SettledItem, StepStage};
use crate::stored::worded;

/// The result of a job so far, printed at the end of `run`. Fields without JSON are for text; `show` has them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobReport {
    pub job: String,
    #[serde(skip)]
    pub name: Option<String>,
    pub status: JobStatus,
    /// Why the job did not complete, or not fully.
    pub reason: Option<Reason>,
    pub error: Option<String>,
    pub items: ItemCounts,
    pub attempts: u64,
    pub retries: u64,
    pub delay_ms: DelayView,
    /// From the submission to the end of the job or, before that, to its last event.
    pub duration_ms: MillisView,
    pub missing: Vec<MissingItem>,
    /// The completion of the first step with a completion rule.
    #[serde(skip)]
    pub completion: Option<CompletionView>,
}

/// An item that was never started, or that its step did not wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingItem {
    pub item: String,
    pub reason: Reason,
}

/// The decision of a completion rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CompletionView {
    /// With its numbers: `min_dcs_reached (3/2)`.
    pub reason: String,
    pub success: bool,
    pub min: u64,
    pub target: u64,
    pub completed: u64,
    pub failed: u64,
    pub missing: u64,
    /// The condition that was met: all reported, the minimum, or the deadline.
    pub why: &'static str,
    /// Whether the step could be completed early.
    pub best_effort: bool,
}

impl CompletionView {
    pub fn of(reached: &CompletionReached) -> Self {
        let completion = reached.completion();
        let reported = reached.completed.saturating_add(reached.failed);
        Self {
            reason: completion.reason.to_string(),
            success: completion.success,
            min: reached.min,
            target: reached.target,
            completed: reached.completed,
            failed: reached.failed,
            missing: reached.target.saturating_sub(reported),
            why: completion.reason.word(),
            best_effort: reached.is_best_effort(),
        }
    }
}

worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum JobStatus {
        Running = "running",
        /// The job ends once its running attempts have ended.
        Stopping = "stopping",
        Suspended = "suspended",
        Completed = "completed",
        Partial = "partial",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl From<JobStage> for JobStatus {
    fn from(stage: JobStage) -> Self {
        match stage {
            JobStage::Running => Self::Running,
            JobStage::Stopping(_) => Self::Stopping,
            JobStage::Suspended => Self::Suspended,
            JobStage::Completed => Self::Completed,
            JobStage::Partial => Self::Partial,
            JobStage::Failed => Self::Failed,
            JobStage::Cancelled => Self::Cancelled,
        }
    }
}

pub fn report(job: &Job) -> JobReport {
    let mut report = summary(job);
    report.missing = missing(job).map(|it| it.named(job)).collect();
    report
}

/// A report without the missing items.
pub(super) fn summary(job: &Job) -> JobReport {
    let status = JobStatus::from(job.stage);
    let failure = job.first_failure();
    let shown = failure.as_ref().or(job.failures.recovered.as_ref());
    let counts = job.tally();
    let reached = || job.counted().filter_map(|(_, step)| step.reached);
    // That of a rule that may complete its step early says more.
    let reached = reached().find(CompletionReached::is_best_effort).or_else(|| reached().next());
    JobReport {
        job: job.id().to_owned(),
        name: job.workflow().name.clone(),
        status,
        reason: why(job, status),
        error: shown.map(|failure| job.texts.read(&failure.error).to_owned()),
        items: (&counts).into(),
        attempts: counts.attempts,
        retries: counts.retries,
        delay_ms: DelayView(counts.delay),
        duration_ms: MillisView(duration(job)),
        missing: Vec::new(),
        completion: reached.as_ref().map(CompletionView::of),
    }
}

fn duration(job: &Job) -> Duration {
    // Dead letters can be dropped and pools enlarged after the end.
    let until = job.times.ended_at.unwrap_or(job.times.last_at);
    until.since(job.times.submitted_at)
}

fn why(job: &Job, status: JobStatus) -> Option<Reason> {
    match status {
        JobStatus::Failed | JobStatus::Cancelled | JobStatus::Partial | JobStatus::Stopping => {
            job.failures.stopped.or_else(|| Some(job.first_failure()?.reason)).or_else(|| job.first_dead())
        }
        JobStatus::Running | JobStatus::Suspended | JobStatus::Completed => None,
    }
}

/// Why a pending item will not start: its step is complete without it, or the job has ended.
pub(super) fn never_started(job: &Job, item: ItemId) -> Option<Reason> {
    let reached = job.step(item.step)?.reached;
    let ended = || why(job, JobStatus::from(job.stage)).filter(|_| job.stage.has_ended());
    reached.map(|reached| reached.reason()).or_else(ended)
}

/// An item that did not run, or the command of a step whose items do not exist yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnstartedItem {
    pub(super) item: Option<ItemId>,
    command: Option<CommandId>,
    reason: Reason,
}

impl UnstartedItem {
    pub(super) fn named(&self, job: &Job) -> MissingItem {
        let command = self.command.and_then(|command| job.plan().command(command));
        let item = self.item.map(|item| job.identity(item));
        let name = item.or_else(|| Some(&command?.id)).unwrap_or_default();
        MissingItem { item: name.to_owned(), reason: self.reason }
    }
}

/// Items never started, and those a step was complete without.
pub(super) fn missing(job: &Job) -> impl Iterator<Item = UnstartedItem> {
    // An unstarted step has the reason for which the job ended: in a list, that of the failed command.
    let why = why(job, JobStatus::from(job.stage)).unwrap_or(Reason::Cancelled);
    let steps = job.counted().filter(|_| job.stage.has_ended());
    steps.flat_map(move |(number, step)| {
        let never = matches!(step.stage, StepStage::Waiting | StepStage::Failed);
        let unread = step.items.is_empty() && never && !job.plan().is_map(number);
        let command = job.plan().first(number).filter(|_| unread);
        let command =
            command.map(|command| UnstartedItem { item: None, command: Some(command), reason: why });
        let late = step.reached.map_or(why, |reached| reached.reason());
        let items = step.items.iter().filter_map(move |(item, state)| {
            let reason = match state {
                ItemState::Pending => late,
                ItemState::Settled(SettledItem::Missing(reason)) => reason,
                ItemState::Active(_) | ItemState::Settled(_) => return None,
            };
            Some(UnstartedItem { item: Some(number.item(item)), command: None, reason })
        });
        command.into_iter().chain(items)
    })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ItemCounts {
    pub total: u64,
    pub succeeded: u64,
    pub dead: u64,
    pub skipped: u64,
}

impl From<&EndCounts> for ItemCounts {
    fn from(counts: &EndCounts) -> Self {
        Self { total: counts.total, succeeded: counts.succeeded, dead: counts.dead, skipped: counts.skipped }
    }
}
