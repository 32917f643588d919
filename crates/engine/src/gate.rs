//! Which items may start now: there is room for them, they are due, and their breakers let them.
//!
//! Asked often, also while a million items are held: only the fronts of queues are looked at.

use undaunted_policy::Timestamp;

use crate::breaker::Openness;
use crate::event::Subject;
use crate::job::{Job, Stage, StepState};

/// The items that may start now: retries that are due before new ones, those in input order.
#[must_use]
pub fn ready(job: &Job, now: Timestamp) -> Vec<(u32, u32)> {
    let mut ready = Vec::new();
    if job.stage != Stage::Running || job.paused.is_some() {
        return ready;
    }
    for (step, state) in job.busy_steps() {
        let room = usize::try_from(room(job, step, state)).unwrap_or(usize::MAX);
        let released = state
            .held
            .breakers()
            .flat_map(|breaker| let_go(job, step, state, breaker, now));
        let due = state.waiting.due_by(now).map(|(_, item)| item);
        let items = released.chain(due).chain(fresh(job, step, state, now));
        let items = items.filter(|item| job.ending(step, *item).is_none());
        ready.extend(items.take(room).map(|item| (step, item)));
    }
    ready
}

/// How many more items of a step may run.
pub(crate) fn room(job: &Job, step: u32, state: &StepState) -> u32 {
    job.parallel(step).saturating_sub(state.running)
}

/// What a breaker holds and lets go.
fn let_go(
    job: &Job,
    step: u32,
    state: &StepState,
    breaker: &str,
    now: Timestamp,
) -> impl Iterator<Item = u32> {
    let many = match job.openness(Some(breaker), now) {
        Openness::Passes(many) => many,
        // Its settings have changed: whoever asks finds out, and the others are told that they fail.
        Openness::Probes if job.breakers().refuses(breaker) => u32::MAX,
        Openness::Probes => {
            let first = state.held.queue(breaker).next();
            let first = first.map(|(_, item)| (step, item));
            u32::from(prober(job, breaker) == first)
        }
        Openness::Holds => 0,
        // They are told that they fail.
        Openness::Refuses => u32::MAX,
    };
    let many = usize::try_from(many).unwrap_or(usize::MAX);
    state.held.queue(breaker).map(|(_, item)| item).take(many)
}

/// Items that were never started and may be. While their breaker is open, as many are held as could
/// run, and the others wait their turn behind them.
fn fresh(job: &Job, step: u32, state: &StepState, now: Timestamp) -> impl Iterator<Item = u32> {
    let breaker = job
        .plan()
        .first(step)
        .and_then(|first| job.breaker_of(first));
    let many = match job.openness(breaker, now) {
        Openness::Passes(many) => many.saturating_sub(breaker.map_or(0, |name| job.held_by(name))),
        Openness::Refuses => u32::MAX,
        Openness::Holds => may_be_held(job, step, state, breaker),
        Openness::Probes => {
            let is_prober = breaker.is_some_and(|name| {
                prober(job, name).is_some_and(|(of, item)| of == step && item == state.cursor)
            });
            may_be_held(job, step, state, breaker).max(is_prober.into())
        }
    };
    let many = usize::try_from(many).unwrap_or(usize::MAX);
    let items = state.cursor..state.items.len();
    let items = items.filter(|item| state.reached.is_none() && !state.ahead.contains(item));
    items.take(many)
}

/// How many more items that were never started are held. If an item may only be held for so long, the
/// time of all of them has to run.
fn may_be_held(job: &Job, step: u32, state: &StepState, breaker: Option<&str>) -> u32 {
    let known = breaker.and_then(|breaker| job.breakers().get(breaker));
    match known.and_then(|known| known.settings.max_hold) {
        Some(_) => u32::MAX,
        None => job.parallel(step).saturating_sub(state.held.len()),
    }
}

/// Who of a job finds out whether the target of a breaker is back, when its time has come: the one with
/// the most attempts left, be it held or not started at all.
#[must_use]
pub fn prober(job: &Job, breaker: &str) -> Option<(u32, u32)> {
    let held = job.busy_steps().filter_map(|(step, state)| {
        let (left, item) = state.held.queue(breaker).next()?;
        Some((left, step, item))
    });
    let fresh = job.busy_steps().filter_map(|(step, state)| {
        let first = job.plan().first(step)?;
        let next = state.cursor < state.items.len() && state.reached.is_none();
        let asks = job.breaker_of(first) == Some(breaker);
        (next && asks).then(|| (job.attempts_left(first, 0), step, state.cursor))
    });
    // Of those that have equally many left, one that is held comes before one that never started.
    let best = held
        .chain(fresh)
        .reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, step, item)| (step, item))
}

/// Whether an item may find out whether the target of a breaker is back: nobody who could has more
/// attempts left. A breaker that holds nobody lets the first one that asks it.
pub(crate) fn may_probe(job: &Job, of: Subject, breaker: &str) -> bool {
    if job.breakers().refuses(breaker) {
        return true;
    }
    let Some((step, item)) = prober(job, breaker) else {
        return true;
    };
    let left = |step: u32, item: u32| {
        let hold = job.step(step).and_then(|state| state.held.get(item));
        let first = || {
            job.plan()
                .first(step)
                .map(|first| job.attempts_left(first, 0))
        };
        hold.map(|hold| hold.left)
            .or_else(first)
            .unwrap_or_default()
    };
    (step, item) == (of.step, of.item)
        || job.attempts_left(of.command, of.attempt) >= left(step, item)
}

/// When a breaker lets more of a step through by itself.
pub(crate) fn next_opening(
    job: &Job,
    step: u32,
    state: &StepState,
    now: Timestamp,
) -> Option<Timestamp> {
    let waits = state.cursor < state.items.len() && state.reached.is_none();
    let first = job.plan().first(step).filter(|_| waits);
    let fresh = first.and_then(|first| job.breaker_of(first));
    let held = state.held.breakers().map(|name| &**name);
    let names = held.chain(fresh);
    let openings = names.filter_map(|name| job.breakers().next(name));
    openings.filter(|at| *at > now).min()
}
