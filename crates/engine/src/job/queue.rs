//! The waiting items of a step, in the order in which they fall due.
//!
//! There may be a million. An instant and a number take sixteen bytes with padding; two halves of the
//! instant and the number take twelve.

use std::collections::BTreeSet;

use undaunted_policy::Timestamp;

/// In the order of due times, then of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryQueue(BTreeSet<Key>);

/// The order of the fields is that of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    due: [u32; 2],
    item: u32,
}

impl Key {
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
        self.0.iter().map(Key::read)
    }

    pub fn due_by(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, u32)> {
        let due = self.0.range(..=Key::of((time, u32::MAX)));
        due.map(Key::read)
    }

    pub fn due_after(&self, time: Timestamp) -> impl Iterator<Item = (Timestamp, u32)> {
        // Everything behind the last possible item of `time` is later.
        let later = self.0.range(Key::of((time, u32::MAX))..);
        later.map(Key::read).filter(move |(due, _)| *due > time)
    }

    pub fn last(&self) -> Option<(Timestamp, u32)> {
        self.0.last().map(Key::read)
    }

    pub fn contains(&self, due: Timestamp, item: u32) -> bool {
        self.0.contains(&Key::of((due, item)))
    }

    pub(crate) fn insert(&mut self, due: Timestamp, item: u32) {
        self.0.insert(Key::of((due, item)));
    }

    pub(crate) fn remove(&mut self, due: Timestamp, item: u32) {
        self.0.remove(&Key::of((due, item)));
    }
}

impl FromIterator<(Timestamp, u32)> for RetryQueue {
    fn from_iter<I: IntoIterator<Item = (Timestamp, u32)>>(items: I) -> Self {
        Self(items.into_iter().map(Key::of).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{Key, RetryQueue, Timestamp};

    /// Instants that are near each other, also where their lower half begins again.
    fn instant() -> impl Strategy<Value = Timestamp> {
        let near = (0_u64..3, 0_u64..4).prop_map(|(high, low)| (high << 32) + low);
        prop_oneof![near, any::<u64>()].prop_map(Timestamp::from_nanos)
    }

    proptest! {
        #[test]
        fn it_is_in_the_order_of_the_instants_and_then_of_the_items(
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
    fn an_item_takes_twelve_bytes() {
        assert_eq!(size_of::<Key>(), 12);
    }
}
