//! A step.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Decoder, Encode};
use undaunted_policy::Timestamp;

use super::super::hold::{Hold, Holds};
use super::super::item::Activity;
use super::super::items::Items;
use super::super::queue::RetryQueue;
use super::super::step::{StepStage, StepState};
use super::active::{Read, Written};
use super::form::{Put, Take, To};
use super::items;
use crate::event::{CompletionReached, codec};

#[derive(Encode, Decode)]
struct Part {
    #[n(0)]
    stage: StepStage,
    #[n(1)]
    cursor: u32,
    #[n(2)]
    ahead: BTreeSet<u32>,
    /// Succeeded, dead, skipped, missing.
    #[n(3)]
    counts: [u32; 4],
    #[n(4)]
    #[cbor(with = "codec::time")]
    started: Timestamp,
    #[n(5)]
    reached: Option<CompletionReached>,
    #[n(6)]
    redriven: BTreeSet<u32>,
    #[n(7)]
    late: BTreeSet<u32>,
    #[n(8)]
    outputs: BTreeMap<u32, String>,
    #[n(9)]
    unreachable: bool,
    #[n(10)]
    again: u32,
    #[n(11)]
    forgiven: u32,
}

pub(super) fn put(step: &StepState, written: &mut Written, leaves_out: bool, to: &mut To<'_>) -> Put {
    // Names every field, so that a new one is not forgotten here.
    let StepState {
        stage,
        items,
        held,
        cursor,
        ahead,
        succeeded,
        dead,
        skipped,
        missing,
        started,
        reached,
        redriven,
        late,
        outputs,
        unreachable,
        again,
        forgiven,
        // Derived from the items.
        waiting: _,
        running: _,
    } = step;
    to.encode(Part {
        stage: *stage,
        cursor: *cursor,
        ahead: ahead.clone(),
        counts: [*succeeded, *dead, *skipped, *missing],
        started: *started,
        reached: *reached,
        redriven: redriven.clone(),
        late: late.clone(),
        outputs: outputs.clone(),
        unreachable: *unreachable,
        again: *again,
        forgiven: *forgiven,
    })?;
    items::put(items, written, leaves_out, to)?;
    put_holds(held, to)
}

fn put_holds(held: &Holds, to: &mut To<'_>) -> Put {
    to.u32(held.len())?;
    for item in held.items() {
        if let Some(hold) = held.get(item) {
            to.u32(item)?.str(&hold.breaker)?;
            to.u64(hold.since.as_nanos())?.u64(hold.left)?;
            to.encode(hold.expires.map(Timestamp::as_nanos))?;
        }
    }
    Ok(())
}

pub(super) fn take(from: &mut Decoder<'_>, read: &mut Read) -> Take<StepState> {
    let part: Part = from.decode()?;
    let items = items::take(from, read)?;
    let held = take_holds(from)?;
    let [succeeded, dead, skipped, missing] = part.counts;
    let (waiting, running) = doing(&items);
    Ok(StepState {
        stage: part.stage,
        items,
        waiting,
        held,
        running,
        cursor: part.cursor,
        ahead: part.ahead,
        succeeded,
        dead,
        skipped,
        missing,
        started: part.started,
        reached: part.reached,
        redriven: part.redriven,
        late: part.late,
        outputs: part.outputs,
        unreachable: part.unreachable,
        again: part.again,
        forgiven: part.forgiven,
    })
}

fn take_holds(from: &mut Decoder<'_>) -> Take<Holds> {
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

fn doing(items: &Items) -> (RetryQueue, u32) {
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
