//! Records of the spool's log, and their framing.
//!
//! On disk a record is its length, a checksum and its bytes: CBOR, in which a field has a number. Reading
//! stops at a record that was cut off or altered, or that only a later release knows.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, SystemTime};

use minicbor::{Decode, Encode};
use undaunted_engine::event::codec::{put, read};

use super::{CommandExit, CommandFate, RunningCommand, VanishedCommand, format_1};
use crate::codec;
use crate::process::{boot, pid_space};

/// Longer than any record.
const MAX_RECORD_BYTES: usize = 4096;
/// Bytes before a record: its length and its checksum.
const FRAME_BYTES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SpoolHeader {
    /// The boot id. After another boot, every process in this log is gone.
    #[n(0)]
    pub(crate) boot: String,
    /// The pid namespace of the numbers in this log.
    #[n(1)]
    pub(crate) pid_space: u64,
    /// The keeper's name in the marks of its commands.
    #[n(2)]
    pub(crate) keeper: String,
    /// The keeper's process, which is also its session.
    #[n(3)]
    pub(crate) pid: i32,
    /// An attempt may have begun that is not in this log.
    #[n(4)]
    pub(crate) uncertain: bool,
}

impl SpoolHeader {
    /// A certain log of this boot.
    pub(crate) fn now(keeper: String, pid: i32) -> io::Result<Self> {
        Ok(Self { boot: boot()?, pid_space: pid_space()?, keeper, pid, uncertain: false })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum SpoolRecord {
    /// A format that older releases cannot read gets a header with another number.
    #[n(0)]
    Header(#[n(0)] SpoolHeader),
    /// Written before the process is created.
    #[n(1)]
    Spawning {
        #[n(0)]
        id: u64,
        #[n(1)]
        #[cbor(with = "codec")]
        at: SystemTime,
        #[n(2)]
        slot: u32,
        #[n(3)]
        #[cbor(with = "codec")]
        grace: Duration,
    },
    /// Written after the process was created.
    #[n(2)]
    Spawned {
        #[n(0)]
        id: u64,
        #[n(1)]
        pid: i32,
    },
    /// Written before the end is reported to the engine.
    #[n(3)]
    Exited(#[n(0)] CommandExit),
    /// Written by the next keeper.
    #[n(4)]
    Vanished(#[n(0)] VanishedCommand),
    /// Written when the engine has the end on record.
    #[n(5)]
    Forgotten {
        #[n(0)]
        id: u64,
    },
}

impl SpoolRecord {
    pub(crate) fn framed(&self) -> Vec<u8> {
        // Enough for most records without reallocation.
        let mut framed = Vec::with_capacity(128);
        framed.extend_from_slice(&[0; FRAME_BYTES]);
        put(self, &mut framed);
        if let Some((head, payload)) = framed.split_first_chunk_mut::<FRAME_BYTES>() {
            let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            let sum = u64::from(crc32fast::hash(payload));
            *head = (u64::from(length) | sum << 32).to_le_bytes();
        }
        framed
    }

    pub(crate) fn take_framed(from: &mut &[u8]) -> Option<Self> {
        let (length, rest) = from.split_first_chunk()?;
        let (checksum, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (payload, rest) = rest.split_at_checked(length)?;
        if length > MAX_RECORD_BYTES || crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let record = match payload.first() {
            Some(tag) if *tag < format_1::TAGS => format_1::record(payload)?,
            _ => read(payload).ok()?,
        };
        *from = rest;
        Some(record)
    }
}

/// The state of every attempt in a log, folded from its records: by a keeper for its own log, and by the next one
/// for the log of a dead keeper.
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
