//! The items of a step.

use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error as Unread;

use super::super::inputs::ItemInputs;
use super::super::item::{ItemState, SettledItem};
use super::super::items::Items;
use super::active::{self, Read, Written};
use super::form::{Put, Take, To};

/// States of items; from `SETTLED` on they are positions in the list of ends.
const PENDING: u8 = 0;
const ACTIVE: u8 = 1;
const SETTLED: u8 = 2;

pub(super) fn put(items: &Items, written: &mut Written, leaves_out: bool, to: &mut To<'_>) -> Put {
    to.u32(items.len())?;
    if leaves_out {
        to.null()?;
    } else {
        to.bytes(items.inputs.as_bytes())?;
    }
    let (states, ends) = states_of(items);
    to.bytes(&states)?.encode(&ends)?;
    for (_, item) in items.iter() {
        if let ItemState::Active(active) = item {
            active::put(active, written, to)?;
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
            let place = ends.iter().position(|end| *end == settled);
            let place = place.unwrap_or_else(|| {
                ends.push(settled);
                ends.len().saturating_sub(1)
            });
            u8::try_from(place).map_or(u8::MAX, |place| place.saturating_add(SETTLED))
        }
    });
    (states.collect(), ends)
}

pub(super) fn take(from: &mut Decoder<'_>, read: &mut Read) -> Take<Items> {
    let many = usize::try_from(from.u32()?).unwrap_or(usize::MAX);
    let inputs = if from.datatype()? == Type::Null {
        from.null()?;
        ItemInputs::left_out(many)
    } else {
        let inputs = ItemInputs::from_bytes(from.bytes()?, many);
        inputs.ok_or_else(|| Unread::message("the items are cut short"))?
    };
    let states = from.bytes()?;
    if states.len() != many {
        return Err(Unread::message("not every item has a state"));
    }
    let ends: Vec<SettledItem> = from.decode()?;
    let mut items = Items::of(inputs, many);
    for (item, state) in (0_u32..).zip(states) {
        match *state {
            PENDING => {}
            ACTIVE => items.begin(item, active::take(from, read)?),
            state => {
                let end = ends.get(usize::from(state.saturating_sub(SETTLED)));
                let end = end.ok_or_else(|| Unread::message("an item has an unknown end"))?;
                items.settle(item, *end);
            }
        }
    }
    Ok(items)
}
