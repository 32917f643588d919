//! Records of a log as releases up to 0.1 wrote them.
//!
//! Only read: a keeper that recovers such a spool rewrites its log; other readers leave it as it is.
//! Numbers are little-endian, a length precedes a text, a tag precedes a variant.

use std::time::{Duration, SystemTime};

use super::{
    CommandEnd, CommandExit, EndedBy, NotStartedCommand, SpoolHeader, SpoolRecord, SpooledOutput,
    StartRefusal, VanishedCommand,
};

/// How many tags there were. CBOR of a record never begins with one of them.
pub(super) const TAGS: u8 = 6;

pub(super) fn record(bytes: &[u8]) -> Option<SpoolRecord> {
    let mut from = Format1Reader(bytes);
    let record = from.record()?;
    from.0.is_empty().then_some(record)
}

struct Format1Reader<'b>(&'b [u8]);

impl Format1Reader<'_> {
    fn record(&mut self) -> Option<SpoolRecord> {
        Some(match self.byte()? {
            0 if self.u32()? == 1 => SpoolRecord::Header(SpoolHeader {
                boot: self.text()?,
                pid_space: self.u64()?,
                keeper: self.text()?,
                pid: self.i32()?,
                uncertain: self.byte()? != 0,
            }),
            1 => SpoolRecord::Spawning {
                id: self.u64()?,
                at: self.time()?,
                slot: self.u32()?,
                grace: self.span()?,
            },
            2 => SpoolRecord::Spawned { id: self.u64()?, pid: self.i32()? },
            3 => SpoolRecord::Exited(CommandExit {
                id: self.u64()?,
                end: self.end()?,
                why: self.why()?,
                began: self.time()?,
                ended: self.time()?,
                stdout: self.kept()?,
                stderr: self.kept()?,
                left: self.u32()?,
            }),
            4 => SpoolRecord::Vanished(VanishedCommand {
                id: self.u64()?,
                began: self.time()?,
                stdout: self.kept()?,
                stderr: self.kept()?,
                ended: self.u32()?,
                survived: self.u32()?,
            }),
            5 => SpoolRecord::Forgotten { id: self.u64()? },
            _ => return None,
        })
    }

    fn end(&mut self) -> Option<CommandEnd> {
        let (tag, number) = (self.byte()?, self.i32()?);
        let refusing = match tag {
            0 => return Some(CommandEnd::Code(number)),
            1 => return Some(CommandEnd::Signal(number)),
            2 => StartRefusal::Program,
            3 => StartRefusal::WorkingDirectory,
            4 => StartRefusal::Stdin,
            _ => return None,
        };
        Some(CommandEnd::NotStarted(NotStartedCommand { errno: number, refusing }))
    }

    fn why(&mut self) -> Option<EndedBy> {
        let all = [EndedBy::Itself, EndedBy::Timeout, EndedBy::OutputLimit, EndedBy::Cancelled];
        all.get(usize::from(self.byte()?)).copied()
    }

    fn kept(&mut self) -> Option<SpooledOutput> {
        Some(SpooledOutput {
            length: self.u64()?,
            head: self.u64()?,
            tail: self.u64()?,
            segment: self.u32()?,
            offset: self.u64()?,
        })
    }

    fn time(&mut self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(self.span()?)
    }

    fn span(&mut self) -> Option<Duration> {
        self.u64().map(Duration::from_nanos)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u32()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(text).ok().map(str::to_owned)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.bytes().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}
