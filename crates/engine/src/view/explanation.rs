//! The causes of the state of a job, and the items to inspect, as `explain JOB` prints them.

use std::collections::BTreeSet;

use serde::Serialize;
use undaunted_policy::Reason;

use super::context::{ViewContext, named_by_limits};
use super::item::InspectedItemView;
use super::job::{count, waiting};
use super::line::{argv, workflow_path};
use super::projection::Projection;
use super::report::{CompletionView, MissingItem, missing, summary};
use super::shared::{LISTED, LateView, SharedLimits, all_held};
use super::status::LiveJobStatus;
use super::time::{DelayView, InstantView, MillisView};
use crate::id::ItemId;
use crate::job::Job;

/// The most dead letters, waiting items and held items.
const INSPECTED: usize = 5;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobExplanation {
    pub job: String,
    pub name: Option<String>,
    pub workflow: Option<String>,
    pub argv: Option<Vec<String>>,
    pub status: LiveJobStatus,
    pub reason: Option<Reason>,
    pub error: Option<String>,
    pub submitted_at: InstantView,
    pub ended_at: Option<InstantView>,
    pub owner: Option<u32>,
    pub items: ItemStates,
    pub attempts: u64,
    pub retries: u64,
    pub delay_ms: DelayView,
    pub duration_ms: MillisView,
    pub missing: Vec<MissingItem>,
    pub missing_total: u64,
    pub completion: Option<CompletionView>,
    #[serde(flatten)]
    pub limits: SharedLimits,
    pub late: Vec<LateView>,
    pub late_total: u64,
    pub look: Vec<InspectedItemView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ItemStates {
    pub total: u64,
    pub succeeded: u64,
    pub dead: u64,
    pub skipped: u64,
    pub running: u64,
    pub waiting: u64,
    pub held: u64,
}

impl JobExplanation {
    /// The items that the view names.
    pub fn items(job: &Job, projection: &Projection) -> BTreeSet<ItemId> {
        let mut items = named_by_limits(job, projection);
        items.extend(to_inspect(job));
        items.extend(missing(job).filter_map(|it| it.item).take(LISTED));
        items
    }

    pub fn of(context: &ViewContext<'_>) -> Self {
        let ViewContext { job, projection, .. } = *context;
        let report = summary(job);
        let inspected = to_inspect(job).into_iter();
        let late = projection.late.iter();
        let waits = job.steps.iter().map(|step| step.waiting.len());
        Self {
            job: report.job,
            name: report.name,
            workflow: workflow_path(job.submitted()),
            argv: argv(job.plan(), job.submitted()),
            status: LiveJobStatus::of(job, context.owner.is_some()),
            reason: report.reason,
            error: report.error,
            submitted_at: InstantView(job.times.submitted_at),
            ended_at: job.times.ended_at.map(InstantView),
            owner: context.owner,
            items: ItemStates {
                total: report.items.total,
                succeeded: report.items.succeeded,
                dead: report.items.dead,
                skipped: report.items.skipped,
                running: count(job.starts.running.len()),
                waiting: count(waits.sum()),
                held: count(all_held(job).count()),
            },
            attempts: report.attempts,
            retries: report.retries,
            delay_ms: report.delay_ms,
            duration_ms: report.duration_ms,
            missing: missing(job).map(|it| it.named(job)).take(LISTED).collect(),
            missing_total: count(missing(job).count()),
            completion: report.completion,
            limits: SharedLimits::of(context),
            late: late.take(LISTED).map(|it| LateView::of(job, it)).collect(),
            late_total: count(projection.late.len()),
            look: inspected.map(|item| InspectedItemView::of(context, item)).collect(),
        }
    }
}

/// Dead letters first, then items that wait for a retry, then held ones; a few of each.
fn to_inspect(job: &Job) -> Vec<ItemId> {
    let dead = job.dead.keys().copied().take(INSPECTED);
    let waiting = waiting(job).take(INSPECTED).map(|(item, _)| item);
    let held = all_held(job).take(INSPECTED);
    dead.chain(waiting).chain(held).collect()
}
