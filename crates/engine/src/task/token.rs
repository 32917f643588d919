//! Finds the attempt that a token belongs to.

use super::call::as_uuid;
use super::identity::receipt_token;
use crate::id::{ItemId, StartId, StepId};
use crate::job::{ItemState, Job};
use crate::workflow::{FlowStepKind, Step, StepWork};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenStatus {
    /// The attempt with this start number is running.
    Running(StartId),
    /// The item waits for its next attempt.
    Waiting,
    /// The round is over.
    Expired,
    Unknown,
}

pub fn find_token(job: &Job, step: &str, token: &str) -> TokenStatus {
    let mut steps = StepId::all().zip(&job.workflow().steps);
    // Only a step whose result comes later hands out tokens.
    let later = |found: &Step| match &found.work {
        StepWork::Call(call) => matches!(call.kind, FlowStepKind::Call { later: true, .. }),
        StepWork::One | StepWork::Map(_) => false,
    };
    let step = steps.find(|(_, found)| found.name == step && later(found));
    let found = step.and_then(|(step, _)| {
        let running = running_of(job, step, token).map(TokenStatus::Running);
        running.or_else(|| idle_of(job, step, token))
    });
    found.unwrap_or(TokenStatus::Unknown)
}

/// Looks at running attempts only: they are few, however many items there are.
fn running_of(job: &Job, step: StepId, token: &str) -> Option<StartId> {
    let mut running = job.starts.running.iter();
    let found = running.find(|&(_, item)| {
        let active = job.active(*item);
        item.step == step && active.is_some_and(|it| is_token(job, token, *item, it.round))
    });
    found.map(|(start, _)| *start)
}

/// Looks at all rounds of the items that are not running.
fn idle_of(job: &Job, step: StepId, token: &str) -> Option<TokenStatus> {
    let state = job.step(step)?;
    state.items.iter().find_map(|(index, found)| {
        let item = step.item(index);
        let dead = job.dead.get(&item);
        let (rounds, current) = match found {
            ItemState::Active(active) => (active.round, Some(active.round)),
            ItemState::Pending => (state.again, None),
            ItemState::Settled(_) => (dead.map_or(job.rounds, |dead| dead.round), None),
        };
        let mut rounds = 1..=rounds;
        let round = rounds.find(|round| is_token(job, token, item, *round))?;
        let waits = current == Some(round);
        Some(if waits { TokenStatus::Waiting } else { TokenStatus::Expired })
    })
}

fn is_token(job: &Job, token: &str, item: ItemId, round: u32) -> bool {
    let command = job.plan().first(item.step);
    command.is_some_and(|command| as_uuid(&receipt_token(job, item, command, round)) == token)
}
