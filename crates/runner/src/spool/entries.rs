//! What a log says about every attempt it knows.
//!
//! A fold of its records, shared by a living keeper and by the one that reads the log of a dead keeper.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::{Exited, Record, Vanished};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries(BTreeMap<u64, Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Begun(Begun),
    Exited(Exited),
    Vanished(Vanished),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) at: SystemTime,
    pub(crate) slot: u32,
    pub(crate) grace: Duration,
    /// Its process, which is also its group; none while it is being created.
    pub(crate) pid: Option<i32>,
}

impl Entries {
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Header(_) => {}
            Record::Spawning { id, at, slot, grace } => {
                let begun = Begun { at: *at, slot: *slot, grace: *grace, pid: None };
                self.0.insert(*id, Entry::Begun(begun));
            }
            Record::Spawned { id, pid } => {
                // A command may end before its start is noted; then the end stays.
                if let Some(Entry::Begun(begun)) = self.0.get_mut(id) {
                    begun.pid = Some(*pid);
                }
            }
            Record::Exited(exited) => {
                self.0.insert(exited.id, Entry::Exited(exited.clone()));
            }
            Record::Vanished(vanished) => {
                self.0.insert(vanished.id, Entry::Vanished(vanished.clone()));
            }
            Record::Forgotten { id } => {
                self.0.remove(id);
            }
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Entry> {
        self.0.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.0.iter().map(|(id, entry)| (*id, entry))
    }

    /// The fewest records that give the same entries.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        self.0.iter().flat_map(|(id, entry)| {
            let id = *id;
            match entry {
                Entry::Begun(begun) => {
                    let spawning =
                        Record::Spawning { id, at: begun.at, slot: begun.slot, grace: begun.grace };
                    let spawned = begun.pid.map(|pid| Record::Spawned { id, pid });
                    [Some(spawning), spawned]
                }
                Entry::Exited(exited) => [Some(Record::Exited(exited.clone())), None],
                Entry::Vanished(vanished) => [Some(Record::Vanished(vanished.clone())), None],
            }
            .into_iter()
            .flatten()
        })
    }
}
