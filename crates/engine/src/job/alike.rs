//! Items that stand alike share where they stand.
//!
//! Follows from the items and changes nothing about them: one that shares with nobody is as right,
//! and larger.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::item::{Active, Standing};
use crate::event::{Text, cause_parts};

/// Where items stand that others may stand too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alike {
    known: BTreeMap<Key, Arc<Standing>>,
    /// How many may be known before those are forgotten where nobody stands any more.
    room: usize,
}

/// Everything about where an item stands that others may have in common with it.
type Key = ([u32; 5], Option<(&'static str, i32)>, Option<u32>);

/// How many are always known.
const LEAST: usize = 1024;

impl Alike {
    /// Has an item stand where others do, if others may.
    pub(super) fn share(&mut self, active: &mut Active) {
        let Some(key) = key(active.standing()) else {
            return;
        };
        if let Some(known) = self.known.get(&key) {
            return active.stand(Arc::clone(known));
        }
        self.know(key, active.standing());
    }

    /// Takes note of where items stand.
    pub(super) fn meet(&mut self, standing: &Arc<Standing>) {
        if let Some(key) = key(standing) {
            self.know(key, standing);
        }
    }

    fn know(&mut self, key: Key, standing: &Arc<Standing>) {
        if self.known.len() >= self.room {
            self.known.retain(|_, known| Arc::strong_count(known) > 1);
            self.room = self.known.len().saturating_mul(2).max(LEAST);
        }
        self.known.insert(key, Arc::clone(standing));
    }
}

fn key(of: &Standing) -> Option<Key> {
    if !of.frames.is_empty() || of.scope.is_some() {
        return None;
    }
    let error = match &of.error {
        None => None,
        Some(Text::Kept(number)) => Some(*number),
        // A text of its own.
        Some(Text::Itself(_)) => return None,
    };
    let numbers = [of.command.0, of.attempts, of.retries, of.round, of.charged];
    Some((numbers, of.cause.map(cause_parts), error))
}
