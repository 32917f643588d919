//! The state of every attempt in a log, folded from its records: by a keeper for its own log, and by the next
//! one for the log of a dead keeper.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::{CommandExit, CommandFate, RunningCommand, SpoolRecord, VanishedCommand};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpoolEntries(BTreeMap<u64, SpoolEntry>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpoolEntry {
    Begun(BegunCommand),
    Exited(CommandExit),
    Vanished(VanishedCommand),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BegunCommand {
    pub(crate) at: SystemTime,
    pub(crate) slot: u32,
    pub(crate) grace: Duration,
    /// Its process, which is also its group; none while it is being created.
    pub(crate) pid: Option<i32>,
}

impl SpoolEntry {
    pub(crate) fn fate(&self, id: u64) -> CommandFate {
        match self {
            Self::Begun(begun) => CommandFate::Running(begun.running(id)),
            Self::Exited(exited) => CommandFate::Exited(exited.clone()),
            Self::Vanished(vanished) => CommandFate::Vanished(Some(vanished.clone())),
        }
    }
}

impl BegunCommand {
    pub(crate) const fn running(&self, id: u64) -> RunningCommand {
        RunningCommand { id, pid: self.pid, slot: Some(self.slot), began: Some(self.at) }
    }
}

impl SpoolEntries {
    pub(crate) fn apply(&mut self, record: &SpoolRecord) {
        match record {
            SpoolRecord::Header(_) => {}
            SpoolRecord::Spawning { id, at, slot, grace } => {
                let begun = BegunCommand { at: *at, slot: *slot, grace: *grace, pid: None };
                self.0.insert(*id, SpoolEntry::Begun(begun));
            }
            SpoolRecord::Spawned { id, pid } => {
                // A command may end before its start is noted; then the end stays.
                if let Some(SpoolEntry::Begun(begun)) = self.0.get_mut(id) {
                    begun.pid = Some(*pid);
                }
            }
            SpoolRecord::Exited(exited) => {
                self.0.insert(exited.id, SpoolEntry::Exited(exited.clone()));
            }
            SpoolRecord::Vanished(vanished) => {
                self.0.insert(vanished.id, SpoolEntry::Vanished(vanished.clone()));
            }
            SpoolRecord::Forgotten { id } => {
                self.0.remove(id);
            }
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<&SpoolEntry> {
        self.0.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &SpoolEntry)> {
        self.0.iter().map(|(id, entry)| (*id, entry))
    }

    /// The fewest records that give the same entries.
    pub(crate) fn records(&self) -> impl Iterator<Item = SpoolRecord> {
        self.0.iter().flat_map(|(id, entry)| {
            let id = *id;
            match entry {
                SpoolEntry::Begun(begun) => {
                    let spawning =
                        SpoolRecord::Spawning { id, at: begun.at, slot: begun.slot, grace: begun.grace };
                    let spawned = begun.pid.map(|pid| SpoolRecord::Spawned { id, pid });
                    [Some(spawning), spawned]
                }
                SpoolEntry::Exited(exited) => [Some(SpoolRecord::Exited(exited.clone())), None],
                SpoolEntry::Vanished(vanished) => [Some(SpoolRecord::Vanished(vanished.clone())), None],
            }
            .into_iter()
            .flatten()
        })
    }
}
