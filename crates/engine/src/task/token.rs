//! Which attempt a token belongs to.

use super::call::as_uuid;
use super::identity::receipt_token;
use crate::event::Subject;
use crate::job::{Item, Job};
use crate::workflow::{Step, StepKind, Work};

/// What a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// An attempt that runs: the number of its start.
    Running(u64),
    /// An item that waits for its next attempt.
    Waiting,
    /// A round of an item that is over.
    Over,
    /// Nothing.
    Nowhere,
}

/// What has this token.
#[must_use]
pub fn find_token(job: &Job, step: &str, token: &str) -> Found {
    let mut steps = (0_u32..).zip(&job.workflow().steps);
    // Only what was taken on has a result that comes later.
    let later = |found: &Step| match &found.work {
        Work::Call(call) => matches!(call.kind, StepKind::Call { later: true, .. }),
        Work::One | Work::Map(_) => false,
    };
    let step = steps.find(|(_, found)| found.name == step && later(found));
    let found = step.and_then(|(step, _)| {
        let running = running_of(job, step, token).map(Found::Running);
        running.or_else(|| idle_of(job, step, token))
    });
    found.unwrap_or(Found::Nowhere)
}

/// The attempt of a step that runs with this token. Few do, however many items there are.
fn running_of(job: &Job, step: u32, token: &str) -> Option<u64> {
    let mut running = job.running.iter();
    let found = running.find(|&(_, &(of, item))| {
        let active = job.active(step, item);
        of == step && active.is_some_and(|it| is_token(job, token, step, item, it.round))
    });
    found.map(|(start, _)| *start)
}

/// What does not run and has this token, in any round of it.
fn idle_of(job: &Job, step: u32, token: &str) -> Option<Found> {
    let state = job.step(step)?;
    state.items.iter().find_map(|(item, found)| {
        let dead = job.dead.get(&(step, item));
        let (rounds, current) = match found {
            Item::Active(active) => (active.round, Some(active.round)),
            Item::Pending => (state.again, None),
            Item::Settled(_) => (dead.map_or(job.rounds, |dead| dead.round), None),
        };
        let mut rounds = 1..=rounds;
        let round = rounds.find(|round| is_token(job, token, step, item, *round))?;
        let waits = current == Some(round);
        Some(if waits { Found::Waiting } else { Found::Over })
    })
}

fn is_token(job: &Job, token: &str, step: u32, item: u32, round: u32) -> bool {
    let command = job.plan().first(step);
    command.is_some_and(|command| {
        let of = Subject {
            step,
            item,
            command,
            attempt: 0,
        };
        as_uuid(&receipt_token(job, of, round)) == token
    })
}
