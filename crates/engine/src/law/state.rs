//! Laws about a job at any time.

use std::collections::BTreeSet;

use super::violation::{Claims, LawViolation};
use crate::id::{StartId, StepId};
use crate::job::{ActiveItem, Activity, ItemState, Job, SettledItem, StepState};

/// The laws that a state breaks. Bounds are the current ones: after `resume --update` more may run than may
/// start.
pub fn violations_in_state(job: &Job) -> Vec<LawViolation> {
    let mut claims = Claims::default();
    let mut live = BTreeSet::new();
    for (number, step) in StepId::all().zip(&job.steps) {
        step_adds_up(job, number, step, &mut live, &mut claims);
    }
    let known: BTreeSet<StartId> = job.starts.running.keys().copied().collect();
    claims.claim("every running attempt is known by its start", known == live, || {
        format!("{known:?} is not {live:?}")
    });
    // Between the records of one decision it is open whether a step is left.
    let items = job.steps.iter().flat_map(|step| step.items.iter());
    let undecided = |item: ItemState<'_>| matches!(item, ItemState::Active(active) if active.activity == Activity::Undecided);
    let decided = !items.into_iter().any(|(_, item)| undecided(item));
    claims.claim(
        "the steps something can happen to are known",
        !decided || job.open == job.open_steps_by_stage(),
        || format!("{:?} is not {:?}", job.open, job.open_steps_by_stage()),
    );
    if let Some(pool) = job.pool {
        claims.claim("a pool is never overdrawn", pool.consumed <= pool.limits.total, || {
            format!("{} of {}", pool.consumed, pool.limits.total)
        });
    }
    claims.broken
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    succeeded: u32,
    dead: u32,
    skipped: u32,
    missing: u32,
    running: u32,
    waiting: usize,
    held: u32,
}

fn step_adds_up(
    job: &Job,
    number: StepId,
    step: &StepState,
    live: &mut BTreeSet<StartId>,
    claims: &mut Claims,
) {
    let mut found = Found::default();
    for (item, state) in step.items.iter() {
        let place = || format!("item {item} of step {number}");
        let pending = matches!(state, ItemState::Pending);
        let turn_to_come = item >= step.cursor && !step.ahead.contains(&item);
        let in_order = pending == turn_to_come;
        claims.claim("items start in input order", in_order, place);
        match state {
            ItemState::Pending => {}
            ItemState::Settled(SettledItem::Succeeded) => {
                found.succeeded = found.succeeded.saturating_add(1);
            }
            ItemState::Settled(SettledItem::Dead(_)) => found.dead = found.dead.saturating_add(1),
            ItemState::Settled(SettledItem::Skipped(_)) => found.skipped = found.skipped.saturating_add(1),
            ItemState::Settled(SettledItem::Missing(_)) => found.missing = found.missing.saturating_add(1),
            ItemState::Active(active) => {
                match active.activity {
                    Activity::Running(start) => {
                        found.running = found.running.saturating_add(1);
                        let fresh = live.insert(start);
                        claims.claim("a start belongs to one item", fresh, place);
                    }
                    Activity::Waiting(due) => {
                        found.waiting = found.waiting.saturating_add(1);
                        let queued = step.waiting.contains(due, item);
                        claims.claim("what waits is in the queue", queued, place);
                    }
                    Activity::Held => {
                        found.held = found.held.saturating_add(1);
                        let known = step.held.get(item).is_some();
                        claims.claim("what is held is known to be", known, place);
                    }
                    Activity::Undecided => {}
                }
                item_adds_up(job, active, place, claims);
            }
        }
    }
    let counted = Found {
        succeeded: step.succeeded,
        dead: step.dead,
        skipped: step.skipped,
        missing: step.missing,
        held: step.held.len(),
        running: step.running,
        waiting: step.waiting.len(),
    };
    claims.claim("what is counted is there", counted == found, || {
        format!("step {number}: {counted:?} is not {found:?}")
    });
    let may = job.parallel(number);
    claims.claim("no more run than may", found.running <= may, || {
        format!("step {number}: {} of {may}", found.running)
    });
}

fn item_adds_up(job: &Job, active: &ActiveItem, place: impl Fn() -> String, claims: &mut Claims) {
    let share = job.pool.map(|pool| pool.limits.per_item);
    let within = share.is_none_or(|most| active.charged <= most);
    claims.claim("no item uses more than its share of the pool", within, || {
        format!("{}: {}", place(), active.charged)
    });
}
