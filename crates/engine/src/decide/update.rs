//! Applies changed settings: pools keep what is used of them, and deadlines that have passed stand.
//!
//! Which settings may change is decided before, in [`crate::update`].

use undaunted_policy::PoolLimits;

use super::draft::EventDraft;
use crate::event::{JobEvent, PassedDeadline, PolicyChange, PoolChange, WorkflowText};
use crate::id::StepId;
use crate::job::{ItemState, Job, StepStage};
use crate::update::{COMPLETION_DEADLINE, DEADLINE, POOL_SHARE, POOL_TOTAL, WHOLE};
use crate::workflow::{PoolRequest, Workflow};

pub(super) fn update(draft: &mut EventDraft<'_>, text: &WorkflowText, changes: &[PolicyChange]) {
    let job = draft.job;
    let plan = text.plan();
    let checked = if plan.is_none() { job.check(text).workflow } else { None };
    let Some(new) = plan.as_ref().map(|plan| plan.workflow()).or(checked.as_ref()) else { return };
    let pool = pool_after(job, new);
    let passed = passed(draft);
    let mut changes = changes.to_vec();
    for change in &mut changes {
        correct(job, change, pool, &passed);
    }
    draft.push(JobEvent::PolicyChanged {
        text: text.clone(),
        changes,
        pool,
        passed: (!passed.is_empty()).then_some(passed),
    });
}

/// The limits of the pool under new settings: never below what is used. A number that is not changed keeps what
/// top-ups have added.
fn pool_after(job: &Job, new: &Workflow) -> Option<PoolChange> {
    let numbers = |request: &PoolRequest| (request.total, request.per_item);
    let old = job.workflow().pool;
    if old.as_ref().map(numbers) == new.pool.as_ref().map(numbers) {
        return None;
    }
    let Some(request) = new.pool else { return Some(PoolChange { limits: None }) };
    let ceilings = job.ceilings();
    let is_unchanged = old.is_some_and(|old| old.total == request.total);
    let kept = job.pool.filter(|_| is_unchanged).map(|pool| pool.limits.total);
    let used = job.pool.map_or(0, |pool| pool.consumed);
    let total = kept.unwrap_or_else(|| request.limits(&ceilings).total).max(used);
    let PoolLimits { per_item, .. } = PoolRequest { total: total.into(), ..request }.limits(&ceilings);
    Some(PoolChange { limits: Some((total, per_item.max(most_charged(job)))) })
}

/// The most units that one item has used.
fn most_charged(job: &Job) -> u32 {
    let items = job.steps.iter().flat_map(|step| step.items.iter());
    let active = items.filter_map(|(_, item)| match item {
        ItemState::Active(active) => Some(active.charged),
        ItemState::Pending | ItemState::Settled(_) => None,
    });
    active.chain(job.dead.values().map(|dead| dead.charged)).max().unwrap_or_default()
}

/// The deadlines that have passed and have not been acted upon.
fn passed(draft: &EventDraft<'_>) -> Vec<PassedDeadline> {
    let (job, now) = (draft.job, draft.now);
    let steps = job.open_steps().filter_map(|(step, state)| {
        let rule = job.plan().rule(step).filter(|rule| rule.best_effort)?;
        let is_open = state.stage == StepStage::Running && state.reached.is_none();
        is_open.then(|| PassedDeadline { step: Some(step), at: state.deadline(rule) })
    });
    let own = job.deadline().map(|at| PassedDeadline { step: None, at });
    own.into_iter().chain(steps).filter(|deadline| deadline.at <= now).collect()
}

/// Corrects the values of a change to those that take effect.
fn correct(job: &Job, change: &mut PolicyChange, pool: Option<PoolChange>, passed: &[PassedDeadline]) {
    let old = job.pool.map(|pool| (pool.limits.total, pool.limits.per_item));
    let number: Option<fn((u32, u32)) -> u32> = match change.setting.as_str() {
        POOL_TOTAL => Some(|(total, _)| total),
        POOL_SHARE => Some(|(_, per_item)| per_item),
        _ => None,
    };
    let limits = pool.map(|pool| pool.limits).filter(|_| change.of == WHOLE);
    if let Some((number, limits)) = number.zip(limits) {
        let text = |limits: Option<(u32, u32)>| {
            limits.map_or_else(|| "none".to_owned(), |limits| number(limits).to_string())
        };
        (change.old, change.new) = (text(old), text(limits));
    }
    let is_of = |step: StepId| job.plan().step(step).is_some_and(|step| step.name == change.of);
    let stands = passed.iter().any(|deadline| match deadline.step {
        None => change.of == WHOLE && change.setting == DEADLINE,
        Some(step) => is_of(step) && change.setting == COMPLETION_DEADLINE,
    });
    if stands {
        change.new = format!("{} (the old one has passed and stands)", change.new);
    }
}
