//! The items of a step, in a snapshot.
//!
//! A million items may stand at few positions, so a position is written with the first item that has it,
//! and referred to by number afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error as Unread;
use undaunted_policy::Timestamp;

use super::super::compact_option::CompactOption;
use super::super::inputs::ItemInputs;
use super::super::item::{ActiveItem, Activity, ItemPosition, ItemState, SettledItem};
use super::super::items::Items;
use super::codec::{PutResult, StateEncoder, TakeResult};
use crate::id::StartId;

/// States of items; from `SETTLED` on they are indexes into the list of final states.
const PENDING: u8 = 0;
const ACTIVE: u8 = 1;
const SETTLED: u8 = 2;

/// Numbers of the positions written so far, by address.
#[derive(Default)]
pub(super) struct WrittenPositions(BTreeMap<*const ItemPosition, u32>);

/// The positions read so far, by number.
#[derive(Default)]
pub(super) struct ReadPositions(pub(super) Vec<Arc<ItemPosition>>);

pub(super) fn put(
    items: &Items,
    positions: &mut WrittenPositions,
    without_inputs: bool,
    to: &mut StateEncoder<'_>,
) -> PutResult {
    to.u32(items.len())?;
    if without_inputs {
        to.null()?;
    } else {
        to.bytes(items.inputs.as_bytes())?;
    }
    let (states, ends) = states_of(items);
    to.bytes(&states)?.encode(&ends)?;
    for (_, item) in items.iter() {
        if let ItemState::Active(active) = item {
            put_active(active, positions, to)?;
        }
    }
    Ok(())
}

fn states_of(items: &Items) -> (Vec<u8>, Vec<SettledItem>) {
    let mut ends: Vec<SettledItem> = Vec::new();
    let states = items.iter().map(|(_, item)| match item {
        ItemState::Pending => PENDING,
        ItemState::Active(_) => ACTIVE,
        ItemState::Settled(settled) => {
            let known = ends.iter().position(|end| *end == settled);
            let index = known.unwrap_or_else(|| {
                ends.push(settled);
                ends.len().saturating_sub(1)
            });
            u8::try_from(index).map_or(u8::MAX, |index| index.saturating_add(SETTLED))
        }
    });
    (states.collect(), ends)
}

pub(super) fn take(from: &mut Decoder<'_>, positions: &mut ReadPositions) -> TakeResult<Items> {
    let count = usize::try_from(from.u32()?).unwrap_or(usize::MAX);
    let inputs = if from.datatype()? == Type::Null {
        from.null()?;
        ItemInputs::left_out(count)
    } else {
        let inputs = ItemInputs::from_bytes(from.bytes()?, count);
        inputs.ok_or_else(|| Unread::message("the names and values of the items are truncated"))?
    };
    let states = from.bytes()?;
    if states.len() != count {
        return Err(Unread::message("the number of states is not the number of items"));
    }
    let ends: Vec<SettledItem> = from.decode()?;
    let mut items = Items::of(inputs, count);
    for (item, state) in (0_u32..).zip(states) {
        match *state {
            PENDING => {}
            ACTIVE => items.begin(item, take_active(from, positions)?),
            state => {
                let end = ends.get(usize::from(state.saturating_sub(SETTLED)));
                let end = end.ok_or_else(|| Unread::message("unknown final state of an item"))?;
                items.settle(item, *end);
            }
        }
    }
    Ok(items)
}

pub(super) fn put_active(
    active: &ActiveItem,
    positions: &mut WrittenPositions,
    to: &mut StateEncoder<'_>,
) -> PutResult {
    let (kind, number) = match active.activity {
        Activity::Running(StartId(start)) => (0, start),
        Activity::Waiting(due) => (1, due.as_nanos()),
        Activity::Held => (2, 0),
        Activity::Undecided => (3, 0),
    };
    to.u8(kind)?.u64(number)?;
    to.u64(active.began.0)?.u64(active.expires.0)?;
    to.u64(active.spent)?.u64(active.previous.0)?;
    let next = u32::try_from(positions.0.len()).unwrap_or(u32::MAX);
    let number = *positions.0.entry(Arc::as_ptr(&active.position)).or_insert(next);
    to.u32(number)?;
    if number == next {
        to.encode(&*active.position)?;
    }
    Ok(())
}

pub(super) fn take_active(from: &mut Decoder<'_>, positions: &mut ReadPositions) -> TakeResult<ActiveItem> {
    let (kind, number) = (from.u8()?, from.u64()?);
    let activity = match kind {
        0 => Activity::Running(StartId(number)),
        1 => Activity::Waiting(Timestamp::from_nanos(number)),
        2 => Activity::Held,
        3 => Activity::Undecided,
        _ => return Err(Unread::message("unknown activity of an item")),
    };
    let (began, expires) = (CompactOption(from.u64()?), CompactOption(from.u64()?));
    let (spent, previous) = (from.u64()?, CompactOption(from.u64()?));
    let number = usize::try_from(from.u32()?).unwrap_or(usize::MAX);
    if number == positions.0.len() {
        positions.0.push(Arc::new(from.decode()?));
    }
    let position = positions.0.get(number);
    let position = position.ok_or_else(|| Unread::message("unknown position of an item"))?;
    Ok(ActiveItem { activity, began, expires, spent, previous, position: Arc::clone(position) })
}
