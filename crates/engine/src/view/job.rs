//! The state of a job, as `show` prints it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use undaunted_policy::{Reason, Timestamp};

use super::context::{ViewContext, command_id, named_by_limits, step_name, steps};
use super::history::History;
use super::hold::HoldView;
use super::line::{argv, workflow_path};
use super::projection::Projection;
use super::report::{CompletionView, ItemCounts, MissingItem, missing, summary};
use super::shared::{LISTED, LateView, SharedLimits, all_held};
use super::status::LiveJobStatus;
use super::time::{DelayView, InstantView, MillisView};
use super::timeline::{TimelineView, worth_drawing};
use crate::decide::describe_cause;
use crate::id::{ItemId, StepId};
use crate::job::{ActiveItem, ItemState, Job, SettledItem, StepStage, StepState};
use crate::stored::worded;

/// Lists that grow with the number of items have at most [`LISTED`] entries; those ending in `_total` say
/// how many there are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    pub job: String,
    pub name: Option<String>,
    pub workflow: Option<String>,
    pub argv: Option<Vec<String>>,
    pub status: LiveJobStatus,
    pub reason: Option<Reason>,
    pub error: Option<String>,
    pub items: ItemCounts,
    pub attempts: u64,
    pub retries: u64,
    pub delay_ms: DelayView,
    pub duration_ms: MillisView,
    pub missing: Vec<MissingItem>,
    pub missing_total: u64,
    pub completion: Option<CompletionView>,
    pub run: u32,
    /// A string, because JSON readers would round the number.
    pub seed: String,
    pub owner: Option<u32>,
    pub submitted_at: InstantView,
    pub ended_at: Option<InstantView>,
    pub last_event_at: InstantView,
    pub paused_at: Option<InstantView>,
    pub steps: Vec<StepView>,
    pub waiting: Vec<WaitingView>,
    pub waiting_total: u64,
    pub held: Vec<HeldView>,
    pub held_total: u64,
    #[serde(flatten)]
    pub limits: SharedLimits,
    pub late: Vec<LateView>,
    pub late_total: u64,
    pub timeline: Vec<TimelineView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepView {
    pub step: String,
    pub stage: StageView,
    pub is_map: bool,
    pub started_at: Option<InstantView>,
    pub ended_at: Option<InstantView>,
    pub items: u32,
    pub running: u32,
    pub waiting: u64,
    pub held: u32,
    pub succeeded: u32,
    pub dead: u32,
    pub skipped: u32,
    /// Items that the step was complete without.
    pub missing: u32,
    /// The first dead letters of a map.
    pub dead_items: Vec<MissingItem>,
    /// The first items that the step was complete without.
    pub missing_items: Vec<MissingItem>,
}

worded! {
    /// The stage of a step. In a job that has ended, no step is waiting, reading or running.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StageView {
        Waiting = "waiting",
        Reading = "reading",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Skipped = "skipped",
        NotStarted = "not_started",
    }
}

/// An item with a pending retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingView {
    pub item: String,
    pub command: Option<String>,
    pub attempts: u32,
    pub retry: u32,
    pub retries_allowed: Option<u32>,
    pub due_at: InstantView,
    pub due_in_ms: MillisView,
    pub spent_ms: DelayView,
    pub retry_budget_expires_at: Option<InstantView>,
    pub failure: String,
    pub error: Option<String>,
}

/// An item on hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldView {
    pub item: String,
    pub command: Option<String>,
    pub attempts: u32,
    #[serde(flatten)]
    pub hold: HoldView,
    pub error: Option<String>,
}

impl StageView {
    fn of(context: &ViewContext<'_>, step: StepId, stage: StepStage) -> Self {
        let has_ended = context.job.stage.has_ended();
        let was_cancelled = || context.projection.was_cancelled(step);
        match stage {
            StepStage::Waiting if has_ended => Self::NotStarted,
            StepStage::Reading(_) | StepStage::Running if has_ended => Self::Cancelled,
            StepStage::Failed if was_cancelled() => Self::Cancelled,
            StepStage::Waiting => Self::Waiting,
            StepStage::Reading(_) => Self::Reading,
            StepStage::Running => Self::Running,
            StepStage::Completed => Self::Completed,
            StepStage::Failed => Self::Failed,
            StepStage::Skipped => Self::Skipped,
        }
    }
}

impl JobView {
    /// The items that the view names. It also needs the histories of [`worth_drawing`].
    pub fn items(job: &Job, projection: &Projection) -> BTreeSet<ItemId> {
        let mut items = named_by_limits(job, projection);
        items.extend(worth_drawing(job));
        items.extend(waiting(job).take(LISTED).map(|(item, _)| item));
        items.extend(all_held(job).take(LISTED));
        items.extend(missing(job).filter_map(|it| it.item).take(LISTED));
        for (step, state) in steps(job) {
            items.extend(dead_of(state).take(NAMED).map(|(it, _)| step.item(it)));
            items.extend(missing_of(state).take(NAMED).map(|(it, _)| step.item(it)));
        }
        items
    }

    pub fn of(context: &ViewContext<'_>, histories: &BTreeMap<ItemId, History>) -> Self {
        let ViewContext { job, projection, .. } = *context;
        let report = summary(job);
        let submitted = job.submitted();
        let held = all_held(job).filter_map(|item| HeldView::of(context, item));
        let late = projection.late.iter();
        Self {
            job: report.job,
            name: report.name,
            workflow: workflow_path(submitted),
            argv: argv(job.plan(), submitted),
            status: LiveJobStatus::of(job, context.owner.is_some()),
            reason: report.reason,
            error: report.error,
            items: report.items,
            attempts: report.attempts,
            retries: report.retries,
            delay_ms: report.delay_ms,
            duration_ms: report.duration_ms,
            missing: missing(job).map(|it| it.named(job)).take(LISTED).collect(),
            missing_total: count(missing(job).count()),
            completion: report.completion,
            run: job.run,
            seed: submitted.seed.to_string(),
            owner: context.owner,
            submitted_at: InstantView(job.times.submitted_at),
            ended_at: job.times.ended_at.map(InstantView),
            last_event_at: InstantView(job.times.last_at),
            paused_at: job.times.paused.map(InstantView),
            steps: steps(job).map(|(step, state)| StepView::of(context, step, state)).collect(),
            waiting: waiting(job)
                .take(LISTED)
                .filter_map(|(item, due)| WaitingView::of(context, item, due))
                .collect(),
            waiting_total: count(waiting(job).count()),
            held: held.take(LISTED).collect(),
            held_total: count(all_held(job).count()),
            limits: SharedLimits::of(context),
            late: late.take(LISTED).map(|it| LateView::of(job, it)).collect(),
            late_total: count(projection.late.len()),
            timeline: TimelineView::of(job, histories),
        }
    }
}

/// The most items of a step that text names.
const NAMED: usize = 10;

fn dead_of(state: &StepState) -> impl Iterator<Item = (u32, Reason)> {
    let dead = state.dead > 0;
    let items = state.items.iter().filter(move |_| dead);
    items.filter_map(|(item, found)| match found {
        ItemState::Settled(SettledItem::Dead(reason)) => Some((item, reason)),
        ItemState::Pending | ItemState::Active(_) | ItemState::Settled(_) => None,
    })
}

fn missing_of(state: &StepState) -> impl Iterator<Item = (u32, Reason)> {
    let items = state.items.iter().filter(|_| state.reached.is_some());
    items.filter_map(|(item, found)| match found {
        ItemState::Settled(SettledItem::Missing(reason)) => Some((item, reason)),
        ItemState::Pending => Some((item, state.reached?.reason())),
        ItemState::Active(_) | ItemState::Settled(_) => None,
    })
}

impl StepView {
    fn of(context: &ViewContext<'_>, step: StepId, state: &StepState) -> Self {
        let plan = context.job.plan();
        let history = context.projection.steps.get(&step);
        let is_map = plan.is_map(step);
        let named = if is_map { NAMED } else { 0 };
        let name = |(item, reason): (u32, Reason)| MissingItem {
            item: state.items.identity(item).to_owned(),
            reason,
        };
        let never = match state.reached {
            Some(_) => state.pending(),
            None => 0,
        };
        Self {
            step: step_name(context.job, step).unwrap_or_default(),
            stage: StageView::of(context, step, state.stage),
            is_map,
            // A redrive can reset a step that has run.
            started_at: history
                .and_then(|history| history.started)
                .filter(|_| state.stage != StepStage::Waiting)
                .map(InstantView),
            ended_at: history.and_then(|history| history.ended).map(InstantView),
            items: state.items.len(),
            running: state.running,
            waiting: count(state.waiting.len()),
            held: state.held.len(),
            succeeded: state.succeeded,
            dead: state.dead,
            skipped: state.skipped,
            missing: state.missing.saturating_add(never),
            dead_items: dead_of(state).take(named).map(name).collect(),
            missing_items: missing_of(state).take(named).map(name).collect(),
        }
    }
}

/// Items with a pending retry, by due time within each step.
pub fn waiting(job: &Job) -> impl Iterator<Item = (ItemId, Timestamp)> {
    steps(job).flat_map(|(step, state)| {
        let timed = state.waiting.due_after(Timestamp::ZERO);
        timed.map(move |(due, item)| (step.item(item), due))
    })
}

impl WaitingView {
    fn of(context: &ViewContext<'_>, item: ItemId, due: Timestamp) -> Option<Self> {
        let job = context.job;
        let active = job.active(item)?;
        let command = job.plan().command(active.command);
        let policy = command.map(|command| &command.retry.policy);
        let spent = active.progress().spent;
        let usual = policy.and_then(|it| it.terms().limits().budget_expires_at(spent, due));
        let expires = active.expires().or(usual);
        Some(Self {
            item: job.identity(item).to_owned(),
            command: command.map(|command| command.id.clone()),
            attempts: active.attempts,
            retry: active.progress().retries,
            retries_allowed: policy.and_then(|policy| policy.bound().retries()),
            due_at: InstantView(due),
            due_in_ms: MillisView(due.since(context.now)),
            spent_ms: DelayView(spent),
            retry_budget_expires_at: expires
                .map(|expires| InstantView(expires.after(context.not_charged(due)))),
            failure: failure(active),
            error: error(job, active),
        })
    }
}

impl HeldView {
    fn of(context: &ViewContext<'_>, item: ItemId) -> Option<Self> {
        let job = context.job;
        let active = job.active(item)?;
        Some(Self {
            item: job.identity(item).to_owned(),
            command: command_id(job, active.command),
            attempts: active.attempts,
            hold: HoldView::of(context, item)?,
            error: error(job, active),
        })
    }
}

pub(super) fn failure(active: &ActiveItem) -> String {
    active.cause.map(|cause| describe_cause(cause, active.limit)).unwrap_or_default()
}

pub(super) fn error(job: &Job, active: &ActiveItem) -> Option<String> {
    let error = active.error.as_ref()?;
    Some(job.texts.read(error).to_owned())
}

pub(super) fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}
