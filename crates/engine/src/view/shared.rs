//! The present state of what items share: holds, completion rules, tolerance.
//!
//! Apart from `report.rs` because most of it is gone when a job ends.

use serde::Serialize;
use undaunted_policy::{Timestamp, Tolerance};

use super::event::rfc3339;
use crate::breaker::{AdmissionControl, BreakerState};
use crate::event::Reached;
use crate::gate::prober;
use crate::id::{ItemId, StepId};
use crate::job::{Item, Job, Settled, StepState};
use crate::workflow::OnComplete;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    pub item: ItemId,
    pub breaker: String,
    pub since: Timestamp,
    /// When the breaker may be probed, if it is open.
    pub until: Option<Timestamp>,
    /// When the hold fails the item.
    pub expires: Option<Timestamp>,
    /// Attempts left; `None` is unlimited.
    pub left: Option<u64>,
    pub goes_first: bool,
}

pub fn holding(job: &Job, breakers: &AdmissionControl, item: ItemId) -> Option<Holding> {
    let hold = job.step(item.step)?.held.get(item.index)?;
    let state = breakers.get(&hold.breaker);
    let shut = state.is_some_and(BreakerState::is_shut);
    Some(Holding {
        item,
        breaker: hold.breaker.to_string(),
        since: hold.since,
        until: state.and_then(BreakerState::until),
        expires: hold.expires,
        left: Some(hold.left).filter(|left| *left < u64::MAX),
        goes_first: shut && prober(job, &hold.breaker) == Some(item),
    })
}

/// In input order.
pub fn all_held(job: &Job) -> impl Iterator<Item = ItemId> {
    let steps = StepId::all().zip(&job.steps);
    steps.flat_map(|(step, state)| state.held.items().map(move |index| step.item(index)))
}

/// A step that does not wait for all its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestEffort {
    pub step: StepId,
    pub min: u64,
    /// `None` before the step has begun.
    pub deadline: Option<Timestamp>,
    pub target: u64,
    pub completed: u64,
    /// Failed or skipped.
    pub failed: u64,
    /// Whether running items continue after completion.
    pub leaves: bool,
    pub reached: Option<Reached>,
}

pub fn best_effort(job: &Job) -> Option<BestEffort> {
    let steps = StepId::all().zip(&job.steps);
    let mut maps = steps.filter_map(|(step, state)| {
        let map = job.plan().map(step)?;
        map.completion.best_effort.then_some((step, state, map))
    });
    let (step, state, map) = maps.next()?;
    let tally = state.reports();
    let begun = state.started > Timestamp::ZERO;
    Some(BestEffort {
        step,
        min: map.completion.min_of(tally.target),
        deadline: begun.then(|| state.started.after(map.completion.deadline)),
        target: tally.target,
        completed: tally.completed,
        failed: tally.failed,
        leaves: map.on_complete == OnComplete::Leave,
        reached: state.reached,
    })
}

/// [`BestEffort`] as JSON, with the names of AD-44.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BestEffortView {
    enabled: bool,
    min_dcs: u64,
    deadline: Option<String>,
    target_dcs: Vec<String>,
    dcs_completed: Vec<String>,
    dcs_failed: Vec<String>,
    dcs_missing: Vec<String>,
    reason: Option<String>,
    success: Option<bool>,
    on_complete: &'static str,
}

pub fn best_effort_names(job: &Job, of: &BestEffort) -> BestEffortView {
    let none = StepState::default();
    let state = job.step(of.step).unwrap_or(&none);
    let names = |wanted: fn(&Item<'_>) -> bool| {
        let items = state.items.iter().filter(|(_, item)| wanted(item));
        let names = items.map(|(item, _)| state.items.identity(item).to_owned());
        names.collect::<Vec<_>>()
    };
    let completion = of.reached.map(|reached| reached.completion());
    BestEffortView {
        enabled: true,
        min_dcs: of.min,
        deadline: of.deadline.map(rfc3339),
        target_dcs: names(|_| true),
        dcs_completed: names(|item| matches!(item, Item::Settled(Settled::Succeeded))),
        dcs_failed: names(|item| {
            matches!(item, Item::Settled(Settled::Dead(_) | Settled::Skipped(_)))
        }),
        dcs_missing: if of.reached.is_some() {
            names(|item| matches!(item, Item::Pending | Item::Settled(Settled::Missing(_))))
        } else {
            Vec::new()
        },
        reason: completion.map(|completion| completion.reason.to_string()),
        success: completion.map(|_| job.is_met(of.step, state)),
        on_complete: if of.leaves { "leave" } else { "cancel" },
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerated {
    pub tolerance: Tolerance,
    pub settled: u64,
    /// Dead letters that count as failures.
    pub failed: u64,
    pub exceeded: bool,
}

/// `None` if the map tolerates everything.
pub fn tolerated(job: &Job) -> Option<Tolerated> {
    let steps = StepId::all().zip(&job.steps);
    let mut maps = steps.filter_map(|(step, state)| Some((job.plan().map(step)?, state)));
    let (map, state) = maps.find(|(map, _)| map.tolerance != Tolerance::default())?;
    let settled = u64::from(state.settled());
    let failed = u64::from(state.dead.saturating_sub(state.forgiven));
    Some(Tolerated {
        tolerance: map.tolerance,
        settled,
        failed,
        exceeded: map.tolerance.exceeded(settled, failed),
    })
}
