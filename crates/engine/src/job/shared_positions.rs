//! Items with an equal standing share it, to save memory. Sharing never changes the meaning of an item.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::item::{ActiveItem, ItemPosition};
use crate::event::{StoredText, cause_parts};

#[derive(Clone, Debug, Default)]
pub(crate) struct SharedPositions {
    known: BTreeMap<Key, Arc<ItemPosition>>,
    /// The size at which standings without items are dropped.
    room: usize,
}

/// Everything about a standing that items may have in common.
type Key = ([u32; 5], Option<(&'static str, i32)>, Option<u32>);

/// The least `room`.
const LEAST: usize = 1024;

impl SharedPositions {
    /// Replaces the standing of an item with an equal, shared one.
    pub(super) fn share(&mut self, active: &mut ActiveItem) {
        let Some(key) = key(active.standing()) else {
            return;
        };
        if let Some(known) = self.known.get(&key) {
            return active.stand(Arc::clone(known));
        }
        self.know(key, active.standing());
    }

    pub(super) fn meet(&mut self, standing: &Arc<ItemPosition>) {
        if let Some(key) = key(standing) {
            self.know(key, standing);
        }
    }

    fn know(&mut self, key: Key, standing: &Arc<ItemPosition>) {
        if self.known.len() >= self.room {
            self.known.retain(|_, known| Arc::strong_count(known) > 1);
            self.room = self.known.len().saturating_mul(2).max(LEAST);
        }
        self.known.insert(key, Arc::clone(standing));
    }
}

fn key(of: &ItemPosition) -> Option<Key> {
    if !of.frames.is_empty() || of.scope.is_some() {
        return None;
    }
    let error = match &of.error {
        None => None,
        Some(StoredText::Kept(number)) => Some(*number),
        // A text of its own.
        Some(StoredText::Itself(_)) => return None,
    };
    let numbers = [of.command.0, of.attempts, of.retries, of.round, of.charged];
    Some((numbers, of.cause.map(cause_parts), error))
}
