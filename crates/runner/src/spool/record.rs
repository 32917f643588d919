//! One line of the spool's log, and how it is told from garbage.
//!
//! On disk a record is its length, a checksum and its bytes: CBOR, in which a field has a number. A
//! record that was cut off or altered is noticed; nothing behind it is believed. So is one of a release
//! that writes what this one does not know.

use std::time::{Duration, SystemTime};

use minicbor::{Decode, Encode};
use undaunted_engine::event::codec::{put, read};

use super::{Exited, Vanished, format_1};
use crate::codec;

/// Longer than any record.
const LONGEST: usize = 4096;
/// What stands before the bytes of a record: their number and their checksum.
const HEAD: usize = 8;

/// The first record of a log: who writes it, and where.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Header {
    /// The boot of the machine. After another one no process of this log lives.
    #[n(0)]
    pub(crate) boot: String,
    /// The space its process numbers belong to.
    #[n(1)]
    pub(crate) pid_space: u64,
    /// The keeper's name in the marks of its commands.
    #[n(2)]
    pub(crate) keeper: String,
    /// The keeper's process, which is also its session.
    #[n(3)]
    pub(crate) pid: i32,
    /// Whether an attempt may have begun that stands nowhere in this log.
    #[n(4)]
    pub(crate) uncertain: bool,
}

/// What a keeper notes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Record {
    /// A log that older releases cannot read gets a header with another number.
    #[n(0)]
    Header(#[n(0)] Header),
    /// Written before the process is made.
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
    /// Written after it was made.
    #[n(2)]
    Spawned {
        #[n(0)]
        id: u64,
        #[n(1)]
        pid: i32,
    },
    /// Written before the engine is told.
    #[n(3)]
    Exited(#[n(0)] Exited),
    /// Written by the keeper that comes after.
    #[n(4)]
    Vanished(#[n(0)] Vanished),
    /// Written when the engine has the end on record.
    #[n(5)]
    Forgotten {
        #[n(0)]
        id: u64,
    },
}

impl Record {
    /// The record as it stands in the file.
    pub(crate) fn framed(&self) -> Vec<u8> {
        // Most are shorter, so that nothing is moved while they are written.
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

    /// The record at the beginning of these bytes, which are moved on past it.
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
