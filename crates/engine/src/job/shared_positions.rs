//! Items at an equal position share it, to save memory. Sharing never changes what an item means.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::item::{ActiveItem, ItemPosition};
use crate::event::{StoredText, TimeLimit, cause_parts};

#[derive(Clone, Debug, Default)]
pub(crate) struct SharedPositions {
    known: BTreeMap<PositionKey, Arc<ItemPosition>>,
    /// The size at which positions without items are dropped.
    capacity: usize,
}

/// Everything about a position that items may have in common.
type PositionKey = ([u32; 5], Option<(&'static str, i32)>, Option<u32>, Option<TimeLimit>);

const MIN_CAPACITY: usize = 1024;

impl SharedPositions {
    /// Replaces the position of an item with an equal, shared one.
    pub(super) fn share(&mut self, active: &mut ActiveItem) {
        let known = key(&active.position).and_then(|key| self.known.get(&key));
        match known {
            Some(known) => active.position = Arc::clone(known),
            None => self.add(&active.position),
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
