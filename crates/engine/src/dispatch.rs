//! Which items may start now: a slot is free, they are due, and their breakers admit them.
//!
//! The runner asks this often, also while a million items are held, so every function looks at the fronts of
//! queues only. Nothing here starts an item: `decide` does, and refuses what has changed meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_policy::Timestamp;

use crate::breaker::{AdmissionControl, BreakerAnswer, BreakerState, ProbeOffer, StartAllowance};
use crate::id::{ItemId, StepId};
use crate::job::{Job, JobStage, StepState};

/// Released items and due retries before new items, those in input order.
pub fn ready(job: &Job, admission: &AdmissionControl, now: Timestamp) -> Vec<ItemId> {
    let mut ready = Vec::new();
    if job.stage != JobStage::Running || job.times.paused.is_some() {
        return ready;
    }
    for (step, state) in job.busy_steps() {
        let slots = usize::try_from(job.free_slots(step, state)).unwrap_or(usize::MAX);
        let starts = StepStarts { job, admission, step, state };
        let released = state.held.breakers().flat_map(|breaker| starts.released(breaker));
        let due = state.waiting.due_by(now).map(|(_, item)| item);
        let items = released.chain(due).chain(starts.unstarted_items());
        let items = items.map(|index| step.item(index)).filter(|item| job.end_reason(*item).is_none());
        ready.extend(items.take(slots));
    }
    ready
}

/// The items of one step that its breakers let start.
struct StepStarts<'a> {
    job: &'a Job,
    admission: &'a AdmissionControl,
    step: StepId,
    state: &'a StepState,
}

impl<'a> StepStarts<'a> {
    /// The held items that a breaker releases now.
    fn released<'b>(&self, breaker: &'b str) -> impl Iterator<Item = u32> + use<'a, 'b> {
        let count = match self.admission.allowance(breaker, self.job.id()) {
            StartAllowance::Admits(count) => count,
            // After a change of settings, the first item that asks probes and the others are refused.
            StartAllowance::AdmitsProbe if self.admission.refuses(breaker) => u32::MAX,
            StartAllowance::AdmitsProbe => {
                let front = self.state.held.queue(breaker).next();
                u32::from(front.is_some_and(|(_, index)| self.probes(breaker, index)))
            }
            StartAllowance::Holds => 0,
            // The breaker refuses them when they ask.
            StartAllowance::Refuses => u32::MAX,
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.state.held.queue(breaker).map(|(_, item)| item).take(count)
    }

    /// The new items that may start. While their breaker is open, only as many are held as could run.
    fn unstarted_items(&self) -> impl Iterator<Item = u32> + use<'a> {
        let state = self.state;
        let count = match breaker_of_unstarted_items(self.job, self.step) {
            None => u32::MAX,
            Some(breaker) => match self.admission.allowance(breaker, self.job.id()) {
                StartAllowance::Admits(count) => count.saturating_sub(self.job.held_by(breaker)),
                StartAllowance::Refuses => u32::MAX,
                StartAllowance::Holds => self.may_hold(breaker),
                StartAllowance::AdmitsProbe => {
                    self.may_hold(breaker).max(self.probes(breaker, state.cursor).into())
                }
            },
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        state.unstarted().take(count)
    }

    /// Whether an item is the one that probes, of all jobs of the process.
    fn probes(&self, breaker: &str, index: u32) -> bool {
        best_prober(self.job, breaker, true).is_some_and(|(left, item)| {
            item == self.step.item(index) && self.admission.ranks_first(breaker, left)
        })
    }

    /// How many more new items may be held. With `max_hold` all of them, so that the limit counts for each.
    fn may_hold(&self, breaker: &str) -> u32 {
        match self.admission.get(breaker).and_then(|known| known.settings.max_hold) {
            Some(_) => u32::MAX,
            None => self.job.parallel(self.step).saturating_sub(self.state.held.len()),
        }
    }
}

fn breaker_of_unstarted_items(job: &Job, step: StepId) -> Option<&str> {
    job.breaker_of(job.plan().first(step)?)
}

/// Whether a step has items that were never started and may start.
fn has_unstarted_items(state: &StepState) -> bool {
    state.cursor < state.items.len() && state.reached.is_none()
}

/// The item of a job that would probe: the held or new one with the most attempts left.
pub fn prober(job: &Job, breaker: &str) -> Option<ItemId> {
    best_prober(job, breaker, false).map(|(_, item)| item)
}

/// The prober and its attempts left, optionally only of steps with a free slot.
fn best_prober(job: &Job, breaker: &str, with_room: bool) -> Option<(u64, ItemId)> {
    let has_room = |step: StepId, state: &StepState| !with_room || job.free_slots(step, state) > 0;
    let steps = || job.busy_steps().filter(|(step, state)| has_room(*step, state));
    let held = steps().filter_map(|(step, state)| {
        let (left, index) = state.held.queue(breaker).next()?;
        Some((left, step.item(index)))
    });
    let fresh = steps().filter_map(|(step, state)| {
        let asks = has_unstarted_items(state) && breaker_of_unstarted_items(job, step) == Some(breaker);
        let first = job.plan().first(step).filter(|_| asks)?;
        Some((job.attempts_left(first, 0), step.item(state.cursor)))
    });
    // On a tie, a held item goes before a new one.
    held.chain(fresh).reduce(|best, next| if next.0 > best.0 { next } else { best })
}

/// Asks a breaker whether an item may start. The probe goes to the item with the most attempts left of all
/// jobs of the process.
pub fn ask_breaker(
    job: &Job,
    admission: &mut AdmissionControl,
    item: ItemId,
    breaker: &Arc<str>,
) -> BreakerAnswer {
    let active = job.active(item);
    let command = active.map(|active| active.command);
    let made = active.map_or(0, |active| active.attempts);
    let command = command.or_else(|| job.plan().first(item.step));
    let left = command.map_or(0, |command| job.attempts_left(command, made));
    let first = best_prober(job, breaker, true).is_none_or(|(most, other)| other == item || most <= left);
    admission.admit(breaker, &job.shared_id(), first.then_some(left))
}

/// The items of a job that wait for its breakers, by breaker.
pub fn probe_offers(job: &Job, admission: &AdmissionControl) -> BTreeMap<Arc<str>, ProbeOffer> {
    let mut offers = BTreeMap::new();
    if !job.plan().has_breakers() || job.stage != JobStage::Running || job.times.paused.is_some() {
        return offers;
    }
    for (step, state) in job.busy_steps() {
        let fresh = breaker_of_unstarted_items(job, step).filter(|_| has_unstarted_items(state));
        let shut = |name: &&str| admission.get(name).is_some_and(BreakerState::is_open_or_half_open);
        let fresh = fresh.filter(shut).map(Arc::from);
        for name in state.held.breakers().cloned().chain(fresh) {
            let offer = ProbeOffer {
                held: job.held_by(&name),
                left: best_prober(job, &name, true).map(|(left, ..)| left),
                draw: job.seed().0,
            };
            offers.insert(name, offer);
        }
    }
    offers
}

/// When a breaker next admits more of a job by itself.
pub fn next_admission(job: &Job, admission: &AdmissionControl) -> Option<Timestamp> {
    if !job.plan().has_breakers() || job.stage != JobStage::Running || job.times.paused.is_some() {
        return None;
    }
    let steps = job.busy_steps().filter(|(step, state)| job.free_slots(*step, state) > 0);
    let openings = steps.flat_map(|(step, state)| {
        let fresh = breaker_of_unstarted_items(job, step).filter(|_| has_unstarted_items(state));
        let names = state.held.breakers().map(|name| &**name).chain(fresh);
        names.filter_map(|name| admission.next_admission(name, job.id()))
    });
    openings.filter(|at| *at > admission.now()).min()
}
