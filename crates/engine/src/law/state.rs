//! Laws about the state of a job, which hold after every record.

use std::collections::BTreeSet;

use crate::id::{StartId, StepId};
use crate::job::{ActiveItem, Activity, ItemState, Job, SettledItem, StepState};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawViolation {
    pub law: &'static str,
    pub what: String,
}

#[derive(Default)]
struct LawCheck {
    broken: Vec<LawViolation>,
}

impl LawCheck {
    fn require(&mut self, law: &'static str, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(LawViolation { law, what: what() });
        }
    }
}

/// The laws that a state breaks. Bounds are the current ones: after `resume --update` more may run than may
/// start.
pub fn violations_in_state(job: &Job) -> Vec<LawViolation> {
    let mut check = LawCheck::default();
    let mut live = BTreeSet::new();
    for (number, step) in StepId::all().zip(&job.steps) {
        step_adds_up(job, number, step, &mut live, &mut check);
    }
    let known: BTreeSet<StartId> = job.starts.running.keys().copied().collect();
    check.require("the starts are those of the running attempts", known == live, || {
        format!("{known:?} is not {live:?}")
    });
    let reserved = job.starts.reserved.values();
    let of_steps = StepId::all().zip(&job.steps);
    let of_steps = of_steps.flat_map(|(step, state)| state.reserved.iter().map(move |item| step.item(*item)));
    check.require(
        "the reserved starts are those of the steps",
        reserved.map(|it| it.item).collect::<BTreeSet<_>>() == of_steps.collect(),
        || format!("{:?}", job.starts.reserved),
    );
    // Between the records of one decision it is undecided whether a step is still open.
    let items = job.steps.iter().flat_map(|step| step.items.iter());
    let undecided = |item: ItemState<'_>| matches!(item, ItemState::Active(active) if active.activity == Activity::Undecided);
    let decided = !items.into_iter().any(|(_, item)| undecided(item));
    check.require(
        "the open steps follow from the stages of all steps",
        !decided || job.open == job.open_steps_by_stage(),
        || format!("{:?} is not {:?}", job.open, job.open_steps_by_stage()),
    );
    if let Some(pool) = job.pool {
        check.require("a pool is never overdrawn", pool.consumed <= pool.limits.total, || {
            format!("{} of {}", pool.consumed, pool.limits.total)
        });
    }
    check.broken
}

#[derive(Debug, Default, PartialEq, Eq)]
struct CountedItems {
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
    check: &mut LawCheck,
) {
    let mut found = CountedItems::default();
    for (item, state) in step.items.iter() {
        let which = || format!("item {item} of step {number}");
        let pending = matches!(state, ItemState::Pending);
        let turn_to_come = item >= step.cursor && !step.ahead.contains(&item);
        let in_order = pending == turn_to_come;
        check.require("items start in input order", in_order, which);
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
                        check.require("a start number belongs to one item", fresh, which);
                    }
                    Activity::Waiting(due) => {
                        found.waiting = found.waiting.saturating_add(1);
                        let queued = step.waiting.contains(due, item);
                        check.require("every waiting item is in the retry queue", queued, which);
                    }
                    Activity::Held => {
                        found.held = found.held.saturating_add(1);
                        let known = step.held.get(item).is_some();
                        check.require("every held item has a hold", known, which);
                    }
                    Activity::Undecided => {}
                }
                item_adds_up(job, active, which, check);
            }
        }
    }
    let counted = CountedItems {
        succeeded: step.succeeded,
        dead: step.dead,
        skipped: step.skipped,
        missing: step.missing,
        held: step.held.len(),
        running: step.running,
        waiting: step.waiting.len(),
    };
    check.require("the counts of a step match its items", counted == found, || {
        format!("step {number}: {counted:?} is not {found:?}")
    });
    let may = job.parallel(number);
    let on_record = step.running_or_reserved();
    check.require("at most one start is reserved for each slot", on_record <= may.saturating_mul(2), || {
        format!("step {number}: {on_record} of {may}")
    });
    check.require("no step runs more items at once than it may", found.running <= may, || {
        format!("step {number}: {} of {may}", found.running)
    });
}

fn item_adds_up(job: &Job, active: &ActiveItem, which: impl Fn() -> String, check: &mut LawCheck) {
    let share = job.pool.map(|pool| pool.limits.per_item);
    let within = share.is_none_or(|most| active.charged <= most);
    check.require("no item uses more than its share of the pool", within, || {
        format!("{}: {}", which(), active.charged)
    });
}
