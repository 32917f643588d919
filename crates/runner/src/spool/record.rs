//! Records of the spool's log, and their framing.
//!
//! On disk a record is its length, a checksum and its bytes: CBOR, in which a field has a number. Reading
//! stops at a record that was cut off or altered, or that only a later release knows.

use std::time::{Duration, SystemTime};

use minicbor::{Decode, Encode};
use undaunted_engine::event::codec::{put, read};

use super::{CommandExit, VanishedCommand, format_1};
use crate::codec;

/// Longer than any record.
const LONGEST: usize = 4096;
/// Bytes before a record: its length and its checksum.
const HEAD: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SpoolHeader {
    /// The boot id. No process of this log lives after another boot.
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
        framed.extend_from_slice(&[0; HEAD]);
        put(self, &mut framed);
        if let Some((head, payload)) = framed.split_first_chunk_mut::<HEAD>() {
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
        if length > LONGEST || crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
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
