//! Items that were started and are not settled.
//!
//! A standing is written with its first item, and referred to by number afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use minicbor::Decoder;
use minicbor::decode::Error as Unread;
use undaunted_policy::Timestamp;

use super::super::compact_option::CompactOption;
use super::super::item::{ActiveItem, Activity, ItemPosition};
use super::form::{Put, Take, To};
use crate::id::StartId;

/// Numbers of written standings, by address.
#[derive(Default)]
pub(super) struct Written(BTreeMap<*const ItemPosition, u32>);

/// Standings by number.
#[derive(Default)]
pub(super) struct Read(pub(super) Vec<Arc<ItemPosition>>);

pub(super) fn put(active: &ActiveItem, written: &mut Written, to: &mut To<'_>) -> Put {
    let (kind, number) = match active.activity {
        Activity::Running(StartId(start)) => (0, start),
        Activity::Waiting(due) => (1, due.as_nanos()),
        Activity::Held => (2, 0),
        Activity::Undecided => (3, 0),
    };
    to.u8(kind)?.u64(number)?;
    to.u64(active.began.0)?.u64(active.expires.0)?;
    to.u64(active.spent)?.u64(active.previous.0)?;
    let next = u32::try_from(written.0.len()).unwrap_or(u32::MAX);
    let number = written.0.entry(Arc::as_ptr(&active.standing));
    let number = *number.or_insert(next);
    to.u32(number)?;
    if number == next {
        to.encode(&*active.standing)?;
    }
    Ok(())
}

pub(super) fn take(from: &mut Decoder<'_>, read: &mut Read) -> Take<ActiveItem> {
    let (kind, number) = (from.u8()?, from.u64()?);
    let doing = match kind {
        0 => Activity::Running(StartId(number)),
        1 => Activity::Waiting(Timestamp::from_nanos(number)),
        2 => Activity::Held,
        3 => Activity::Undecided,
        _ => return Err(Unread::message("an item does something unknown")),
    };
    let (began, expires) = (CompactOption(from.u64()?), CompactOption(from.u64()?));
    let (spent, previous) = (from.u64()?, CompactOption(from.u64()?));
    let number = usize::try_from(from.u32()?).unwrap_or(usize::MAX);
    if number == read.0.len() {
        read.0.push(Arc::new(from.decode()?));
    }
    let standing = read.0.get(number);
    let standing = standing.ok_or_else(|| Unread::message("an item stands nowhere"))?;
    Ok(ActiveItem { activity: doing, began, expires, spent, previous, standing: Arc::clone(standing) })
}
