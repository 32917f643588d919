//! The waiting items of a step, in the order in which they fall due.
//!
//! A million items may wait. A `u64` instant and a `u32` item take sixteen bytes with padding; the two halves
//! of the instant and the item take twelve.

use std::collections::BTreeSet;

use undaunted_policy::Timestamp;

/// Ordered by due time, then by input order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryQueue(BTreeSet<QueueKey>);

/// The order of the fields is that of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueueKey {
    due: [u32; 2],
    item: u32,
}

impl QueueKey {
    fn of((due, item): (Timestamp, u32)) -> Self {
        let half = |nanos: u64| u32::try_from(nanos & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let nanos = due.as_nanos();
        Self { due: [half(nanos >> 32), half(nanos)], item }
    }

    fn read(&self) -> (Timestamp, u32) {
        let [high, low] = self.due;
        let nanos = u64::from(high) << 32 | u64::from(low);
        (Timestamp::from_nanos(nanos), self.item)
    }
}

impl RetryQueue {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, u32)> {
        self.0.iter().map(QueueKey::read)
    }

    pub fn due_by(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, u32)> {
        self.0.range(..=QueueKey::of((time, u32::MAX))).map(QueueKey::read)
    }

    pub fn due_after(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, u32)> {
        // Every key after the last possible item of `time` is later.
        let later = self.0.range(QueueKey::of((time, u32::MAX))..);
        later.map(QueueKey::read).filter(move |(due, _)| *due > time)
    }

    pub fn last(&self) -> Option<(Timestamp, u32)> {
        self.0.last().map(QueueKey::read)
    }

    pub fn contains(&self, due: Timestamp, item: u32) -> bool {
        self.0.contains(&QueueKey::of((due, item)))
    }

    pub(crate) fn insert(&mut self, due: Timestamp, item: u32) {
        self.0.insert(QueueKey::of((due, item)));
    }

    pub(crate) fn remove(&mut self, due: Timestamp, item: u32) {
        self.0.remove(&QueueKey::of((due, item)));
    }
}

impl FromIterator<(Timestamp, u32)> for RetryQueue {
    fn from_iter<I: IntoIterator<Item = (Timestamp, u32)>>(items: I) -> Self {
        Self(items.into_iter().map(QueueKey::of).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{QueueKey, RetryQueue, Timestamp};

    /// Instants near each other, also where their lower half wraps around.
    fn instant() -> impl Strategy<Value = Timestamp> {
        let near = (0_u64..3, 0_u64..4).prop_map(|(high, low)| (high << 32) + low);
        prop_oneof![near, any::<u64>()].prop_map(Timestamp::from_nanos)
    }

    proptest! {
        #[test]
        fn the_queue_is_ordered_by_due_time_and_then_by_item(
            items in prop::collection::btree_set((instant(), 0_u32..4), 0..40), time in instant(),
        ) {
            let queue: RetryQueue = items.iter().copied().collect();
            let all: Vec<_> = queue.iter().collect();
            prop_assert_eq!(&all, &items.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(queue.last(), items.last().copied());
            let (due, later): (BTreeSet<_>, BTreeSet<_>) =
                items.iter().copied().partition(|(due, _)| *due <= time);
            prop_assert_eq!(queue.due_by(time).collect::<BTreeSet<_>>(), due);
            prop_assert_eq!(queue.due_after(time).collect::<BTreeSet<_>>(), later);
        }
    }

    #[test]
    fn a_queued_item_takes_twelve_bytes() {
        assert_eq!(size_of::<QueueKey>(), 12);
    }
}
