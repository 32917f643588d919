//! The items of a step that breakers hold.
//!
//! A million may be held at once, so queries look at the front of a queue and never at all items.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use undaunted_policy::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub breaker: Arc<str>,
    pub since: Timestamp,
    /// When the hold ends by failing the item.
    pub expires: Option<Timestamp>,
    /// The attempts that the item has left.
    pub left: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    by_item: BTreeMap<u32, Hold>,
    /// By breaker; most attempts left first.
    queues: BTreeMap<Arc<str>, BTreeSet<(Reverse<u64>, u32)>>,
    expiring: BTreeSet<(Timestamp, u32)>,
}

impl Holds {
    pub fn len(&self) -> u32 {
        u32::try_from(self.by_item.len()).unwrap_or(u32::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.by_item.is_empty()
    }

    pub fn get(&self, item: u32) -> Option<&Hold> {
        self.by_item.get(&item)
    }

    /// In input order.
    pub fn items(&self) -> impl Iterator<Item = u32> {
        self.by_item.keys().copied()
    }

    pub fn breakers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.queues.keys()
    }

    /// Attempts left and item; the most attempts first.
    pub fn queue(&self, breaker: &str) -> impl Iterator<Item = (u64, u32)> {
        self.queues.get(breaker).into_iter().flatten().map(|(Reverse(left), item)| (*left, *item))
    }

    pub fn held_by(&self, breaker: &str) -> u32 {
        let count = self.queues.get(breaker).map_or(0, BTreeSet::len);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = u32> {
        self.expiring.range(..=(now, u32::MAX)).map(|(_, item)| *item)
    }

    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiring.first().map(|(expires, _)| *expires)
    }

    /// The name as a shared string, if an item is already held by this breaker.
    pub(super) fn name(&self, breaker: &str) -> Arc<str> {
        self.queues.get_key_value(breaker).map_or_else(|| Arc::from(breaker), |(name, _)| Arc::clone(name))
    }

    pub(super) fn insert(&mut self, item: u32, hold: Hold) {
        self.remove(item);
        self.queues.entry(Arc::clone(&hold.breaker)).or_default().insert((Reverse(hold.left), item));
        if let Some(expires) = hold.expires {
            self.expiring.insert((expires, item));
        }
        self.by_item.insert(item, hold);
    }

    pub(super) fn remove(&mut self, item: u32) -> Option<Hold> {
        let hold = self.by_item.remove(&item)?;
        if let Some(queue) = self.queues.get_mut(&hold.breaker) {
            queue.remove(&(Reverse(hold.left), item));
            if queue.is_empty() {
                self.queues.remove(&hold.breaker);
            }
        }
        if let Some(expires) = hold.expires {
            self.expiring.remove(&(expires, item));
        }
        Some(hold)
    }

    pub(super) fn expire_at(&mut self, item: u32, expires: Option<Timestamp>) {
        if let Some(hold) = self.remove(item) {
            self.insert(item, Hold { expires, ..hold });
        }
    }

    /// A hold that began in the future (the clock was set back) begins now.
    pub(super) fn clamp(&mut self, now: Timestamp) {
        let ahead = self.by_item.iter().filter(|(_, hold)| hold.since > now);
        let ahead: Vec<(u32, Hold)> = ahead.map(|(item, hold)| (*item, hold.clone())).collect();
        for (item, hold) in ahead {
            let longest = hold.expires.map(|expires| expires.since(hold.since));
            let moved = Hold { since: now, expires: longest.map(|longest| now.after(longest)), ..hold };
            self.insert(item, moved);
        }
    }

    /// The clock stood still from `left` to `now`.
    pub(super) fn stand_still(&mut self, left: Timestamp, now: Timestamp) {
        let expiring = std::mem::take(&mut self.expiring);
        for (expires, item) in expiring {
            if let Some(hold) = self.by_item.get_mut(&item) {
                let later = expires.after(now.since(hold.since.max(left)));
                hold.expires = Some(later);
                self.expiring.insert((later, item));
            }
        }
    }
}
