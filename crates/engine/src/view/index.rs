//! The index of a journal: which records are about which item.
//!
//! One column has four bytes for each record, in journal order: a key of the item. A search reads this column once,
//! a few milliseconds for a million items, and needs neither sorting nor an entry for each item. Two items may share
//! a key, so a match may belong to another item, and the reader compares.
//!
//! Items of maps are found by name in the same way, with a hash of four bytes for each item. `pages` tells which
//! record has their names and values.

use std::collections::BTreeSet;

use crate::event::{Event, Record, StepEvent};
use crate::fnv::Fnv1a;
use crate::id::{ItemId, StepId};
use crate::stored::stored;

stored! {
    /// The two columns are not encoded: they are saved as they are.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct RecordIndex {
        /// The key of every record, by its version.
        #[cbor(skip)]
        pub records: IndexKeys,
        /// The hash of the name of every item, in journal order.
        #[cbor(skip)]
        pub names: IndexKeys,
        pub pages: Vec<ItemPage> = 0,
    }

    /// Items of a map that were read together.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ItemPage {
        pub step: StepId = 0,
        /// The index of the first item.
        pub first: u32 = 1,
        pub items: u32 = 2,
        /// The version of the record that has the items.
        pub version: u64 = 3,
    }
}

/// Little-endian numbers of four bytes, as they are saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexKeys(pub Vec<u8>);

/// The key of records that are not about an item.
const NO_ITEM: u32 = u32::MAX;

impl IndexKeys {
    fn push(&mut self, key: u32) {
        self.0.extend_from_slice(&key.to_le_bytes());
    }

    pub fn len(&self) -> u64 {
        u64::try_from(self.0.len() / 4).unwrap_or(u64::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let keys = self.0.as_chunks::<4>().0.iter();
        keys.map(|key| u32::from_le_bytes(*key))
    }
}

impl ItemPage {
    pub fn contains(&self, item: ItemId) -> bool {
        let within = item.index.checked_sub(self.first);
        self.step == item.step && within.is_some_and(|offset| offset < self.items)
    }
}

impl RecordIndex {
    /// Adds the next record of the journal.
    pub(super) fn take(&mut self, version: u64, record: &Record) {
        let key = match &record.event {
            Event::Item(event) => key(event.item()),
            Event::Job(_) | Event::Step(_) | Event::Breaker(_) => NO_ITEM,
        };
        self.records.push(key);
        if let Event::Step(StepEvent::ItemsRead { step, items, .. }) = &record.event {
            let before = self.pages.iter().rfind(|page| page.step == *step);
            let first = before.map_or(0, |page| page.first.saturating_add(page.items));
            self.pages.push(ItemPage {
                step: *step,
                first,
                items: u32::try_from(items.len()).unwrap_or(u32::MAX),
                version,
            });
            for item in items {
                self.names.push(hash(&item.identity));
            }
        }
    }

    /// The versions of the records that may be about one of these items, in order.
    pub fn records_of(&self, items: &BTreeSet<ItemId>) -> Vec<u64> {
        let keys: BTreeSet<u32> = items.iter().copied().map(key).collect();
        let filter = KeyFilter::of(&keys);
        let numbered = (1_u64..).zip(self.records.iter());
        let found = numbered.filter(|(_, key)| filter.may_have(*key) && keys.contains(key));
        found.map(|(version, _)| version).collect()
    }

    /// The version of the first record about an item.
    pub fn first_of_items(&self) -> Option<u64> {
        let mut numbered = (1_u64..).zip(self.records.iter());
        numbered.find(|(_, key)| *key != NO_ITEM).map(|(version, _)| version)
    }

    /// The items of maps that may have this name, in order.
    pub fn named(&self, name: &str) -> Vec<ItemId> {
        let hash = hash(name);
        let items = self.pages.iter().flat_map(|page| {
            let end = page.first.saturating_add(page.items);
            (page.first..end).map(|index| page.step.item(index))
        });
        let found = items.zip(self.names.iter());
        found.filter(|(_, it)| *it == hash).map(|(item, _)| item).collect()
    }

    pub fn page_of(&self, item: ItemId) -> Option<&ItemPage> {
        let first = self.pages.partition_point(|page| page.step < item.step);
        let pages = self.pages.get(first..).unwrap_or_default();
        pages.iter().find(|page| page.contains(item))
    }
}

fn key(item: ItemId) -> u32 {
    // Any odd number: it spreads the few steps over the keys, which are mostly indexes of one step.
    item.index.wrapping_add(item.step.0.wrapping_mul(0x9e37_79b1))
}

fn hash(name: &str) -> u32 {
    let hash = Fnv1a::of(name.bytes());
    let low = (hash ^ (hash >> 32)) & u64::from(u32::MAX);
    u32::try_from(low).unwrap_or_default()
}

/// A bit filter: a quick test that rejects most other keys.
struct KeyFilter(Vec<u64>);

impl KeyFilter {
    const BITS: u32 = 1 << 20;

    fn of(keys: &BTreeSet<u32>) -> Self {
        let mut filter = Self(vec![0; usize::try_from(Self::BITS / 64).unwrap_or_default()]);
        for key in keys {
            let (word, bit) = Self::bit(*key);
            if let Some(word) = filter.0.get_mut(word) {
                *word |= 1 << bit;
            }
        }
        filter
    }

    fn bit(key: u32) -> (usize, u32) {
        let bit = key % Self::BITS;
        (usize::try_from(bit / 64).unwrap_or_default(), bit % 64)
    }

    fn may_have(&self, key: u32) -> bool {
        let (word, bit) = Self::bit(key);
        self.0.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }
}
