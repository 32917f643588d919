//! Correlation ids and receipt tokens, and the attempt that a token belongs to.
//!
//! Other systems see these ids, so they never change. They are computed from the names of the job and the
//! item, so nothing is stored but those that another system gave.

use undaunted_policy::Seed;

use crate::fnv::Fnv1a;
use crate::id::{CommandId, ItemId, StartId, StepId};
use crate::job::{ItemState, Job};
use crate::workflow::{FlowStepKind, Step, StepWork};

/// A UUID, or the id that was imported for the item.
pub fn correlation_id(job: &Job, item: ItemId) -> String {
    if !job.correlations.is_empty()
        && let Some(imported) = job.correlations.get(job.identity(item))
    {
        return imported.clone();
    }
    let draws = name_of(job).draws(item.index.into(), item.step.0.into(), 0);
    let (high, low) = (draws.at(1), draws.at(2));
    // Version 8 (custom) and the variant of RFC 9562.
    let high = (high & !0xf000) | 0x8000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    hex([high, low], &[4, 6, 8, 10])
}

/// 32 hexadecimal digits, with a dash before each of these bytes. Every attempt has such ids, and `format!` takes
/// four times as long.
fn hex([high, low]: [u64; 2], dashes: &[usize]) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in high.to_be_bytes().into_iter().chain(low.to_be_bytes()).enumerate() {
        if dashes.contains(&place) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from_digit(digit.into(), 16).unwrap_or_default());
        }
    }
    text
}

/// The same for all attempts of a command in a round, and of a handler in a round of its own: each round of
/// a handler is work of its own, which a receiver must not take for a repetition.
pub fn receipt_token(job: &Job, item: ItemId, command: CommandId, round: u32) -> String {
    let number = u64::from(item.step.0) << 32 | u64::from(item.index);
    let draws = name_of(job).draws(number, command.0.into(), round);
    let before = handler_round(job, item, command).saturating_sub(1);
    let first = before.saturating_mul(2).saturating_add(3);
    hex([draws.at(first), draws.at(first.saturating_add(1))], &[])
}

/// The current round of the handler that a command belongs to; 1 for every other command.
fn handler_round(job: &Job, item: ItemId, command: CommandId) -> u32 {
    let parent = job.plan().handled_by(command);
    let frame = parent.zip(job.active(item)).and_then(|(parent, active)| {
        let mut frames = active.frames.iter();
        frames.rfind(|frame| frame.command == parent)
    });
    frame.map_or(1, |frame| frame.rounds)
}

/// Jobs with the same seed must not share ids, so these draws have a seed of their own, from the job's name.
/// The stored key makes tokens impossible to guess.
fn name_of(job: &Job) -> Seed {
    let key = job.submitted().token_key.map(u64::to_le_bytes).into_iter().flatten();
    let name = job.id().bytes().chain(key);
    Seed(Fnv1a::of(name))
}

/// A token in the form that the steps of flows expect.
pub fn as_uuid(token: &str) -> String {
    let piece = |range| token.get(range).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", piece(0..8), piece(8..12), piece(12..16), piece(16..20), piece(20..32))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenStatus {
    /// The attempt with this start number is running.
    Running(StartId),
    /// The item waits for its next attempt.
    Waiting(ItemId),
    /// The item was given up, or its step was complete without it, and no result for it is known.
    Late(ItemId),
    /// The round is over.
    Expired,
    Unknown,
}

pub fn find_token(job: &Job, step: &str, token: &str) -> TokenStatus {
    let mut steps = StepId::all().zip(&job.workflow().steps);
    // Only a step whose result comes by webhook gives a token to its target.
    let later = |found: &Step| match &found.work {
        StepWork::Call(call) => matches!(call.kind, FlowStepKind::Call { later: true, .. }),
        StepWork::One | StepWork::Map(_) => false,
    };
    let step = steps.find(|(_, found)| found.name == step && later(found));
    let found = step.and_then(|(step, _)| {
        running_of(job, step, token).map(TokenStatus::Running).or_else(|| idle_of(job, step, token))
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
            // Before the first attempt of its round an item has given its token to no target.
            ItemState::Active(active) => (active.round, Some(active.round).filter(|_| active.attempts > 0)),
            ItemState::Pending => (state.again, None),
            ItemState::Settled(_) => (dead.map_or(job.rounds, |dead| dead.round), None),
        };
        let round = (1..=rounds).find(|round| is_token(job, token, item, *round))?;
        Some(if current == Some(round) {
            TokenStatus::Waiting(item)
        } else if job.may_report_late(item) {
            TokenStatus::Late(item)
        } else {
            TokenStatus::Expired
        })
    })
}

fn is_token(job: &Job, token: &str, item: ItemId, round: u32) -> bool {
    let command = job.plan().first(item.step);
    command.is_some_and(|command| as_uuid(&receipt_token(job, item, command, round)) == token)
}
