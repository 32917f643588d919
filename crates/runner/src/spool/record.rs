//! One line of the spool's log, and how it is told from garbage.
//!
//! On disk a record is its length, a checksum and its bytes. A record that was cut off or altered is
//! noticed; nothing behind it is believed.

use std::time::{Duration, SystemTime};

use super::{Exited, Vanished};
use crate::bytes::{self, Bytes, Malformed, take_tag};

/// The version of the log; a keeper reads no other.
pub(crate) const VERSION: u32 = 1;
/// Longer than any record.
const LONGEST: usize = 4096;

/// The first record of a log: who writes it, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The boot of the machine. After another one no process of this log lives.
    pub(crate) boot: String,
    /// The space its process numbers belong to.
    pub(crate) pid_space: u64,
    /// The keeper's name in the marks of its commands.
    pub(crate) keeper: String,
    /// The keeper's process, which is also its session.
    pub(crate) pid: i32,
    /// Whether an attempt may have begun that stands nowhere in this log.
    pub(crate) uncertain: bool,
}

/// What a keeper notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Header(Header),
    /// Written before the process is made.
    Spawning {
        id: u64,
        at: SystemTime,
        slot: u32,
        grace: Duration,
    },
    /// Written after it was made.
    Spawned {
        id: u64,
        pid: i32,
    },
    /// Written before the engine is told.
    Exited(Exited),
    /// Written by the keeper that comes after.
    Vanished(Vanished),
    /// Written when the engine has the end on record.
    Forgotten {
        id: u64,
    },
}

impl Record {
    /// The record as it stands in the file.
    pub(crate) fn framed(&self) -> Vec<u8> {
        let payload = bytes::encode(self);
        let mut framed = Vec::with_capacity(payload.len().saturating_add(8));
        u32::try_from(payload.len())
            .unwrap_or(u32::MAX)
            .put(&mut framed);
        crc32fast::hash(&payload).put(&mut framed);
        framed.extend_from_slice(&payload);
        framed
    }

    /// The record at the beginning of these bytes, which are moved on past it.
    pub(crate) fn take_framed(from: &mut &[u8]) -> Result<Self, Malformed> {
        let mut rest = *from;
        let (length, checksum) = <(u32, u32)>::take(&mut rest)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Err(Malformed("a record is too long"));
        }
        let (payload, rest) = rest
            .split_at_checked(length)
            .ok_or(Malformed("a record was cut off"))?;
        if crc32fast::hash(payload) != checksum {
            return Err(Malformed("a checksum does not match"));
        }
        let record = bytes::decode(payload)?;
        *from = rest;
        Ok(record)
    }
}

impl Bytes for Header {
    fn put(&self, to: &mut Vec<u8>) {
        VERSION.put(to);
        self.boot.put(to);
        self.pid_space.put(to);
        self.keeper.put(to);
        self.pid.put(to);
        u8::from(self.uncertain).put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        if u32::take(from)? != VERSION {
            return Err(Malformed("a log of another version"));
        }
        Ok(Self {
            boot: Bytes::take(from)?,
            pid_space: Bytes::take(from)?,
            keeper: Bytes::take(from)?,
            pid: Bytes::take(from)?,
            uncertain: take_tag(from)? != 0,
        })
    }
}

impl Bytes for Record {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Header(header) => {
                to.push(0);
                header.put(to);
            }
            Self::Spawning {
                id,
                at,
                slot,
                grace,
            } => {
                to.push(1);
                id.put(to);
                at.put(to);
                slot.put(to);
                grace.put(to);
            }
            Self::Spawned { id, pid } => {
                to.push(2);
                id.put(to);
                pid.put(to);
            }
            Self::Exited(exited) => {
                to.push(3);
                exited.put(to);
            }
            Self::Vanished(vanished) => {
                to.push(4);
                vanished.put(to);
            }
            Self::Forgotten { id } => {
                to.push(5);
                id.put(to);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(match take_tag(from)? {
            0 => Self::Header(Bytes::take(from)?),
            1 => Self::Spawning {
                id: Bytes::take(from)?,
                at: Bytes::take(from)?,
                slot: Bytes::take(from)?,
                grace: Bytes::take(from)?,
            },
            2 => Self::Spawned {
                id: Bytes::take(from)?,
                pid: Bytes::take(from)?,
            },
            3 => Self::Exited(Bytes::take(from)?),
            4 => Self::Vanished(Bytes::take(from)?),
            5 => Self::Forgotten {
                id: Bytes::take(from)?,
            },
            _ => return Err(Malformed("an unknown record")),
        })
    }
}
