//! Items at an equal position share it, to save memory. Sharing never changes what an item means.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_policy::Timestamp;

use super::item::{ActiveItem, ItemPosition};
use crate::event::{StoredText, TimeLimit, cause_parts};
use crate::id::CommandId;

#[derive(Clone, Debug, Default)]
pub(crate) struct SharedPositions {
    known: BTreeMap<PositionKey, Arc<ItemPosition>>,
    /// The size at which positions without items are dropped.
    capacity: usize,
    /// The last one that was shared: items that fail at the same time mostly fail alike.
    last: Option<Arc<ItemPosition>>,
    /// The position of an item that has just begun its first command.
    fresh: Option<Arc<ItemPosition>>,
    /// The shared position from which an item started last, and the one it came to. Many items may start from
    /// there at once.
    started: Option<[Arc<ItemPosition>; 2]>,
}

/// Everything about a position that items may have in common.
type PositionKey = ([u32; 5], Option<(&'static str, i32)>, Option<u32>, Option<TimeLimit>);

const MIN_CAPACITY: usize = 1024;

impl SharedPositions {
    /// Replaces the position of an item with an equal, shared one.
    pub(super) fn share(&mut self, active: &mut ActiveItem) {
        if let Some(last) = &self.last
            && *last == active.position
        {
            active.position = Arc::clone(last);
            return;
        }
        let known = key(&active.position).and_then(|key| self.known.get(&key));
        match known {
            Some(known) => {
                active.position = Arc::clone(known);
                self.last = Some(Arc::clone(known));
            }
            None => self.add(&active.position),
        }
    }

    /// An item that begins this command, as [`ActiveItem::new`] makes it.
    pub(crate) fn fresh_item(&self, command: CommandId) -> ActiveItem {
        let fresh = self.fresh.as_ref().filter(|fresh| fresh.command == command);
        fresh.map_or_else(
            || ActiveItem::new(command, Timestamp::ZERO),
            |fresh| ActiveItem::at(Arc::clone(fresh), Timestamp::ZERO),
        )
    }

    /// As [`Self::fresh_item`]; the next ones share the position.
    pub(super) fn begin_item(&mut self, command: CommandId) -> ActiveItem {
        let item = self.fresh_item(command);
        self.fresh = Some(Arc::clone(&item.position));
        item
    }

    /// Gives an item that starts its number of attempts.
    pub(super) fn start(&mut self, active: &mut ActiveItem, attempts: u32) {
        if let Some([before, after]) = &self.started
            && Arc::ptr_eq(before, &active.position)
            && after.attempts == attempts
        {
            active.position = Arc::clone(after);
        } else if Arc::strong_count(&active.position) == 1 {
            active.attempts = attempts;
        } else {
            let before = Arc::clone(&active.position);
            active.attempts = attempts;
            self.started = Some([before, Arc::clone(&active.position)]);
        }
    }

    pub(super) fn add(&mut self, position: &Arc<ItemPosition>) {
        let Some(key) = key(position) else { return };
        if self.known.len() >= self.capacity {
            self.known.retain(|_, known| Arc::strong_count(known) > 1);
            self.capacity = self.known.len().saturating_mul(2).max(MIN_CAPACITY);
        }
        self.known.insert(key, Arc::clone(position));
    }
}

fn key(of: &ItemPosition) -> Option<PositionKey> {
    // Named one by one, so that a new field cannot be left out.
    let ItemPosition { command, attempts, retries, round, charged, cause, error, frames, scope, limit } = of;
    if !frames.is_empty() || scope.is_some() {
        return None;
    }
    let error = match error {
        None => None,
        Some(StoredText::Kept(number)) => Some(*number),
        // No other item has this text.
        Some(StoredText::Itself(_)) => return None,
    };
    let numbers = [command.0, *attempts, *retries, *round, *charged];
    Some((numbers, cause.map(cause_parts), error, *limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_start_from_one_position_share_the_next_one() {
        let mut shared = SharedPositions::default();
        let mut items = [0, 1].map(|_| shared.begin_item(CommandId(3)));
        for item in &mut items {
            shared.start(item, 1);
        }
        let [first, mut second] = items;
        assert!(Arc::ptr_eq(&first.position, &second.position));
        assert_eq!((first.attempts, first.round, first.command), (1, 1, CommandId(3)));
        second.charged = 1;
        assert_eq!((first.charged, shared.begin_item(CommandId(3)).attempts), (0, 0));
    }

    #[test]
    fn an_item_that_starts_elsewhere_keeps_what_it_has() {
        let mut shared = SharedPositions::default();
        let mut first = shared.begin_item(CommandId(0));
        shared.start(&mut first, 1);
        let mut other = shared.begin_item(CommandId(0));
        // The number of attempts of an item that was imported.
        shared.start(&mut other, 5);
        let mut next = shared.begin_item(CommandId(1));
        shared.start(&mut next, 1);
        let of = |item: &ActiveItem| (item.command, item.attempts);
        assert_eq!(
            [&first, &other, &next].map(of),
            [(CommandId(0), 1), (CommandId(0), 5), (CommandId(1), 1)]
        );
    }
}
