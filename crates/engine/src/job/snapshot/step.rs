//! A step in a snapshot: its own fields, then its items, then its holds.

use minicbor::Decoder;
use undaunted_policy::Timestamp;

use super::super::hold::{Hold, Holds};
use super::super::item::Activity;
use super::super::items::Items;
use super::super::queue::RetryQueue;
use super::super::step::StepState;
use super::codec::{PutResult, StateEncoder, TakeResult};
use super::items::{self, ReadPositions, WrittenPositions};

pub(super) fn put(
    step: &StepState,
    positions: &mut WrittenPositions,
    without_inputs: bool,
    to: &mut StateEncoder<'_>,
) -> PutResult {
    to.encode(step)?;
    items::put(&step.items, positions, without_inputs, to)?;
    to.u32(step.held.len())?;
    for item in step.held.items() {
        if let Some(hold) = step.held.get(item) {
            to.u32(item)?.str(&hold.breaker)?;
            to.u64(hold.since.as_nanos())?.u64(hold.left)?;
            to.encode(hold.expires.map(Timestamp::as_nanos))?;
        }
    }
    Ok(())
}

pub(super) fn take(from: &mut Decoder<'_>, positions: &mut ReadPositions) -> TakeResult<StepState> {
    let mut step: StepState = from.decode()?;
    step.items = items::take(from, positions)?;
    step.held = take_holds(from)?;
    (step.waiting, step.running) = waiting_and_running(&step.items);
    Ok(step)
}

fn take_holds(from: &mut Decoder<'_>) -> TakeResult<Holds> {
    let mut holds = Holds::default();
    for _ in 0..from.u32()? {
        let (item, breaker) = (from.u32()?, from.str()?);
        let (since, left) = (from.u64()?, from.u64()?);
        let expires: Option<u64> = from.decode()?;
        let hold = Hold {
            breaker: holds.name(breaker),
            since: Timestamp::from_nanos(since),
            expires: expires.map(Timestamp::from_nanos),
            left,
        };
        holds.insert(item, hold);
    }
    Ok(holds)
}

fn waiting_and_running(items: &Items) -> (RetryQueue, u32) {
    let (mut waiting, mut running) = (Vec::new(), 0_u32);
    for item in 0..items.len() {
        match items.active(item).map(|active| active.activity) {
            Some(Activity::Waiting(due)) => waiting.push((due, item)),
            Some(Activity::Running(_)) => running = running.saturating_add(1),
            Some(Activity::Held | Activity::Undecided) | None => {}
        }
    }
    (waiting.into_iter().collect(), running)
}
