//! What many items share, as it stands: who is held and who goes first, what a completion rule waits
//! for, how far a tolerance is from being passed.
//!
//! Stands apart from `report.rs` because it is about the present: most of it is gone when a job ends.

use serde::Serialize;
use undaunted_policy::{Timestamp, Tolerance};

use super::event::rfc3339;
use crate::breaker::{AdmissionControl, BreakerState};
use crate::event::Reached;
use crate::gate::prober;
use crate::id::{ItemId, StepId};
use crate::job::{Item, Job, Settled, StepState};
use crate::workflow::OnComplete;

/// An item that a breaker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    pub item: ItemId,
    pub breaker: String,
    /// Since when it is held.
    pub since: Timestamp,
    /// When the breaker looks again, if it is open and that is known.
    pub until: Option<Timestamp>,
    /// When the item is held no longer and fails, if there is such a time.
    pub expires: Option<Timestamp>,
    /// How many attempts it has left; `None` is any number.
    pub left: Option<u64>,
    /// Whether it is the one that finds out whether the target is back.
    pub goes_first: bool,
}

/// How an item is held, if it is.
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

/// Every item that is held, in input order.
pub fn all_held(job: &Job) -> impl Iterator<Item = ItemId> {
    let steps = StepId::all().zip(&job.steps);
    steps.flat_map(|(step, state)| state.held.items().map(move |index| step.item(index)))
}

/// A step that does not wait for all its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestEffort {
    pub step: StepId,
    /// How many have to succeed.
    pub min: u64,
    /// Until when they are waited for; none before the step has begun.
    pub deadline: Option<Timestamp>,
    /// How many there are.
    pub target: u64,
    /// How many have succeeded.
    pub completed: u64,
    /// How many have failed or were skipped.
    pub failed: u64,
    /// Whether what still runs when it is complete goes on.
    pub leaves: bool,
    /// What was decided, if it was.
    pub reached: Option<Reached>,
}

/// The step of a job that does not wait for all its items, if it has one.
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

/// The same for machines, with the names of AD-44.
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

/// The names behind the numbers of [`best_effort`].
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

/// How far a step is from giving up on its remaining items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerated {
    pub tolerance: Tolerance,
    /// Items that are settled.
    pub settled: u64,
    /// Those of them that count as failures.
    pub failed: u64,
    /// Whether that is too many.
    pub exceeded: bool,
}

/// What the map of a job tolerates, if it does not tolerate everything.
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
