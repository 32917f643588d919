//! The journals of breakers as a store keeps them: appended to by anyone, in the order of arrival.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_engine::breaker::{BreakerJournal, BreakerRecord};

/// The records of each breaker with their versions. Every record is encoded and decoded on its way in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journals {
    records: BTreeMap<Arc<str>, Vec<(u64, BreakerRecord)>>,
}

impl Journals {
    /// Appends a record without asking for a version; the version it gets.
    pub(crate) fn append(&mut self, name: &Arc<str>, record: &BreakerRecord) -> u64 {
        let read = BreakerRecord::decode(&record.encode()).unwrap();
        assert_eq!(&read, record, "a decoded record differs");
        let records = self.records.entry(Arc::clone(name)).or_default();
        let version = records.last().map_or(1, |(last, _)| last + 1);
        records.push((version, read));
        version
    }

    /// All records of a breaker.
    pub(crate) fn of(&self, name: &str) -> &[(u64, BreakerRecord)] {
        self.records.get(name).map_or(&[], Vec::as_slice)
    }

    /// The records of a breaker after a version.
    pub(crate) fn after(&self, name: &str, version: u64) -> Vec<(u64, BreakerRecord)> {
        let records = self.of(name).iter();
        records.filter(|(at, _)| *at > version).cloned().collect()
    }

    /// What the journal of a breaker comes to.
    pub(crate) fn fold(&self, name: &str) -> BreakerJournal {
        BreakerJournal::fold(self.of(name))
    }

    /// Removes the records of a breaker up to a version.
    pub(crate) fn trim(&mut self, name: &str, upto: u64) {
        if let Some(records) = self.records.get_mut(name) {
            records.retain(|(version, _)| *version > upto);
        }
    }

    /// The breakers that have records.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.records.keys().cloned().collect()
    }
}
