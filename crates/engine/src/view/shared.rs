//! The limits that the items of a job share: pool, breakers, completion rule, tolerance, deadlines.

use serde::Serialize;
use undaunted_policy::{Reason, Tolerance};

use super::breaker::BreakerView;
use super::context::{ViewContext, steps};
use super::history::LateEnd;
use super::projection::LateItem;
use super::report::CompletionView;
use super::time::{InstantView, MillisView};
use crate::event::CompletionReached;
use crate::id::{ItemId, StepId};
use crate::job::{ItemState, Job, SettledItem, StepState};

/// The most entries of a list that grows with the number of items. A `_total` beside it is its full length.
pub const LISTED: usize = 100;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedLimits {
    pub pool: Option<PoolView>,
    pub breakers: Vec<JobBreakerView>,
    pub best_effort: Option<BestEffortView>,
    pub tolerance: Option<ToleranceView>,
    pub deadline: Option<InstantView>,
    pub item_deadline_ms: Option<MillisView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PoolView {
    pub total: u32,
    pub used: u32,
    pub per_item: u32,
    /// The highest total that a top-up can reach.
    pub maximum: u32,
}

/// A breaker, and the number of items of this job that it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobBreakerView {
    #[serde(flatten)]
    pub view: BreakerView,
    pub held: u32,
}

/// A completion rule, with the names of AD-44. Each list of names has at most [`LISTED`] of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BestEffortView {
    /// Whether the step may complete without all items.
    pub enabled: bool,
    pub min_dcs: u64,
    /// Null before the step has begun, and without `best_effort`.
    pub deadline: Option<InstantView>,
    pub target_dcs: Vec<String>,
    pub dcs_completed: Vec<String>,
    pub dcs_failed: Vec<String>,
    pub dcs_missing: Vec<String>,
    pub reason: Option<String>,
    pub success: Option<bool>,
    pub on_complete: &'static str,
    pub target: u64,
    pub completed: u64,
    pub failed: u64,
    /// Items that were not waited for and are not settled yet.
    pub open: u64,
    pub completion: Option<CompletionView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ToleranceView {
    pub max_failures: Option<u64>,
    pub failure_threshold: Option<f64>,
    pub settled: u64,
    /// Dead letters that count as failures.
    pub failed: u64,
    pub exceeded: bool,
}

/// The result of an item after its step was complete without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LateView {
    pub item: String,
    pub at: InstantView,
    pub result: &'static str,
    pub reason: Option<Reason>,
    pub policy: &'static str,
}

impl SharedLimits {
    pub fn of(context: &ViewContext<'_>) -> Self {
        let job = context.job;
        let known = context.breakers;
        let breakers = known.names().filter_map(|name| {
            let view = BreakerView::of(name, known.get(name)?);
            Some(JobBreakerView { view, held: job.held_by(name) })
        });
        let mut limits = steps(job).filter_map(|(step, _)| job.item_limit(step));
        Self {
            pool: job.pool.map(|pool| PoolView {
                total: pool.limits.total,
                used: pool.consumed,
                per_item: pool.limits.per_item,
                maximum: job.ceilings().max_total,
            }),
            breakers: breakers.collect(),
            best_effort: best_effort(job),
            tolerance: tolerance(job),
            deadline: job.deadline().map(InstantView),
            item_deadline_ms: limits.next().map(MillisView),
        }
    }
}

impl LateView {
    pub fn of(job: &Job, late: &LateItem) -> Self {
        Self::with(job.identity(late.item), &late.end)
    }

    pub fn with(item: &str, end: &LateEnd) -> Self {
        Self {
            item: item.to_owned(),
            at: InstantView(end.at),
            result: match end.reason {
                None => "succeeded",
                Some(_) => "failed",
            },
            reason: end.reason,
            policy: if end.counted { "update_result" } else { "log_only" },
        }
    }
}

/// The items on hold, in input order.
pub fn all_held(job: &Job) -> impl Iterator<Item = ItemId> {
    steps(job).flat_map(|(step, state)| state.held.items().map(move |index| step.item(index)))
}

/// The first step with a rule that may complete it early, else the first one whose items are counted.
fn with_rule(job: &Job) -> Option<(StepId, &StepState)> {
    let rule = |step: StepId| job.plan().rule(step);
    let early = |state: &StepState| state.reached.is_some_and(|reached| reached.is_best_effort());
    let named = |(step, state): &(StepId, &StepState)| {
        early(state) || rule(*step).is_some_and(|rule| rule.best_effort)
    };
    steps(job).find(named).or_else(|| steps(job).find(|(step, _)| rule(*step).is_some()))
}

/// The items that the view of the completion rule names.
pub(super) fn named_by_rule(job: &Job) -> Vec<ItemId> {
    let Some((step, state)) = with_rule(job) else {
        return Vec::new();
    };
    let kinds: [fn(&ItemState<'_>) -> bool; 4] = [|_| true, has_completed, has_failed, is_missing];
    let named = kinds.into_iter().flat_map(|wanted| {
        let items = state.items.iter().filter(move |(_, item)| wanted(item));
        items.take(LISTED).map(|(index, _)| step.item(index))
    });
    named.collect()
}

const fn has_completed(item: &ItemState<'_>) -> bool {
    matches!(item, ItemState::Settled(SettledItem::Succeeded))
}

const fn has_failed(item: &ItemState<'_>) -> bool {
    matches!(item, ItemState::Settled(SettledItem::Dead(_) | SettledItem::Skipped(_)))
}

const fn is_missing(item: &ItemState<'_>) -> bool {
    matches!(item, ItemState::Pending | ItemState::Settled(SettledItem::Missing(_)))
}

fn best_effort(job: &Job) -> Option<BestEffortView> {
    let (step, state) = with_rule(job)?;
    let (rule, on_complete) = job.plan().completion(step)?;
    let tally = state.reports();
    let names = |wanted: fn(&ItemState<'_>) -> bool| {
        let items = state.items.iter().filter(|(_, item)| wanted(item));
        let names = items.map(|(item, _)| state.items.identity(item).to_owned());
        names.take(LISTED).collect::<Vec<_>>()
    };
    let began = state.started > undaunted_policy::Timestamp::ZERO;
    let deadline = state.deadline(rule);
    let reached = state.reached.as_ref();
    let completion = reached.map(CompletionReached::completion);
    let waits = state.waiting.len().saturating_add(state.running as usize);
    let open = u64::try_from(waits).unwrap_or(u64::MAX);
    Some(BestEffortView {
        enabled: rule.best_effort,
        min_dcs: rule.min_of(tally.target),
        deadline: (began && rule.best_effort).then_some(InstantView(deadline)),
        target_dcs: names(|_| true),
        dcs_completed: names(has_completed),
        dcs_failed: names(has_failed),
        dcs_missing: match reached {
            Some(_) => names(is_missing),
            None => Vec::new(),
        },
        reason: completion.map(|completion| completion.reason.to_string()),
        success: completion.map(|_| job.is_met(step, state)),
        on_complete: on_complete.word(),
        target: tally.target,
        completed: tally.completed,
        failed: tally.failed,
        open: open.saturating_add(state.held.len().into()),
        completion: reached.map(CompletionView::of),
    })
}

/// `None` if the map tolerates any number of failures.
fn tolerance(job: &Job) -> Option<ToleranceView> {
    let mut maps = steps(job).filter_map(|(step, state)| Some((job.plan().map(step)?, state)));
    let (map, state) = maps.find(|(map, _)| map.tolerance != Tolerance::default())?;
    let settled = u64::from(state.settled());
    let failed = u64::from(state.dead.saturating_sub(state.forgiven));
    Some(ToleranceView {
        max_failures: map.tolerance.max_failures,
        failure_threshold: map.tolerance.failure_threshold,
        settled,
        failed,
        exceeded: map.tolerance.exceeded(settled, failed),
    })
}
