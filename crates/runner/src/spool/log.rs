//! The log of a spool: appended to, read as a whole, and rewritten when most of it is forgotten.
//!
//! A written record is in the page cache, so it survives the death of any process. The log is not synced:
//! another boot id shows that the machine was restarted, and then nothing in the spool is trusted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::{
    CommandFate, RunningCommand, Spool, SpoolDamage, SpoolEntries, SpoolEntry, SpoolHeader, SpoolRecord,
};
use crate::failpoint;

/// A shorter log is not rewritten.
const SMALL: u64 = 256 << 10;

#[derive(Debug)]
pub(crate) struct SpoolLog {
    spool: Spool,
    file: File,
    length: u64,
    /// The length beyond which it is rewritten.
    rewrite_at: u64,
    header: SpoolHeader,
    entries: SpoolEntries,
    /// The file lacks a record that `entries` has, or has only a part of it.
    is_behind: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadLog {
    pub(crate) header: SpoolHeader,
    pub(crate) entries: SpoolEntries,
    pub(crate) damage: Option<SpoolDamage>,
}

impl SpoolLog {
    /// Replaces the log by one with these entries.
    pub(crate) fn create(spool: &Spool, header: SpoolHeader, entries: SpoolEntries) -> io::Result<Self> {
        let content = written(&header, &entries);
        let next = spool.log().with_extension("next");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        file.write_all(&content)?;
        failpoint::pass("log-before-rename");
        std::fs::rename(&next, spool.log())?;
        failpoint::pass("log-after-rename");
        let file = OpenOptions::new().append(true).open(spool.log())?;
        let length = u64::try_from(content.len()).unwrap_or(u64::MAX);
        Ok(Self {
            spool: spool.clone(),
            file,
            length,
            rewrite_at: length.saturating_mul(2).max(SMALL),
            header,
            entries,
            is_behind: false,
        })
    }

    /// Writes the log of a new job, in which no attempt can have begun. Fails if there is a log.
    pub(crate) fn begin(spool: &Spool, header: SpoolHeader) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(spool.log())?;
        file.write_all(&SpoolRecord::Header(header).framed())
    }

    /// Adds a record before the action it announces. If it cannot be written, the log is unchanged and the
    /// action must not happen.
    pub(crate) fn announce(&mut self, record: &SpoolRecord) -> io::Result<()> {
        if self.is_behind {
            self.rewrite()?;
        }
        self.write(record)?;
        self.entries.apply(record);
        Ok(())
    }

    /// Adds a record of what has happened. If it cannot be written now, it is written with the next record.
    pub(crate) fn note(&mut self, record: &SpoolRecord) {
        self.entries.apply(record);
        if self.is_behind || self.length > self.rewrite_at {
            // A failure leaves the old log in place; the next record tries again.
            self.is_behind = self.rewrite().is_err();
        } else {
            self.is_behind = self.write(record).is_err();
        }
    }

    /// From now on, an attempt that is not in the log never began.
    pub(crate) fn trust(&mut self) -> io::Result<()> {
        if self.header.uncertain {
            self.header.uncertain = false;
            self.rewrite()?;
        }
        Ok(())
    }

    pub(crate) fn is_uncertain(&self) -> bool {
        self.header.uncertain
    }

    pub(crate) fn entries(&self) -> &SpoolEntries {
        &self.entries
    }

    fn write(&mut self, record: &SpoolRecord) -> io::Result<()> {
        let framed = record.framed();
        if let Err(error) = self.file.write_all(&framed) {
            // A partial record would hide everything behind it.
            self.is_behind = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        let written = u64::try_from(framed.len()).unwrap_or(u64::MAX);
        self.length = self.length.saturating_add(written);
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<()> {
        *self = Self::create(&self.spool, self.header.clone(), self.entries.clone())?;
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundLog {
    Nothing,
    /// A file that does not begin as a log of this version.
    Garbage(SpoolDamage),
    Log(ReadLog),
}

impl FoundLog {
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let content = match std::fs::read(path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(error),
        };
        Ok(Self::in_file(&content))
    }

    fn in_file(content: &[u8]) -> Self {
        let mut rest = content;
        let damage = |rest: &[u8]| SpoolDamage {
            offset: count(content.len().saturating_sub(rest.len())),
            unread: count(rest.len()),
        };
        let Some(SpoolRecord::Header(header)) = SpoolRecord::take_framed(&mut rest) else {
            return Self::Garbage(damage(content));
        };
        let mut log = ReadLog { header, entries: SpoolEntries::default(), damage: None };
        while !rest.is_empty() {
            let Some(record) = SpoolRecord::take_framed(&mut rest) else {
                log.damage = Some(damage(rest));
                break;
            };
            log.entries.apply(&record);
        }
        Self::Log(log)
    }
}

/// The shortest log with these entries.
fn written(header: &SpoolHeader, entries: &SpoolEntries) -> Vec<u8> {
    let mut content = SpoolRecord::Header(header.clone()).framed();
    for record in entries.records() {
        content.extend_from_slice(&record.framed());
    }
    content
}

/// For fuzzing: reads a log and writes it anew, and says where it was damaged. Fails if it does not even
/// begin as a log.
#[doc(hidden)]
pub fn reread_log(content: &[u8]) -> Result<(Vec<u8>, Option<SpoolDamage>), SpoolDamage> {
    match FoundLog::in_file(content) {
        FoundLog::Log(log) => Ok((written(&log.header, &log.entries), log.damage)),
        FoundLog::Garbage(damage) => Err(damage),
        // Not reached: only a missing file is `Nothing`.
        FoundLog::Nothing => Ok((vec![], None)),
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

const PIECE: usize = 1 << 20;

impl Spool {
    /// The fate of an attempt now, read without disturbing the keeper. The whole log is read each time: it is short,
    /// since what has ended is forgotten. An attempt that is not in the log has not begun, or its end was collected.
    pub fn peek(&self, id: u64) -> io::Result<CommandFate> {
        let FoundLog::Log(log) = FoundLog::at(&self.log())? else {
            return Ok(CommandFate::NeverBegan);
        };
        let entry = log.entries.get(id);
        let mut fate = entry.map_or(CommandFate::NeverBegan, |entry| entry.fate(id));
        if let CommandFate::Running(RunningCommand { slot, .. }) = &mut fate {
            // A slot is reused a moment before the end of its last command is recorded; then it no longer
            // belongs to that command.
            let shares =
                |entry: &SpoolEntry| matches!(entry, SpoolEntry::Begun(it) if Some(it.slot) == *slot);
            let users = log.entries.iter().filter(|(_, entry)| shares(entry)).count();
            *slot = slot.filter(|_| users == 1);
        }
        Ok(fate)
    }

    /// What a running attempt has written so far, from these offsets of its output and error output on, at
    /// most a mebibyte of each. None if it is not running, or has just ended.
    pub fn live(&self, id: u64, from: [u64; 2]) -> io::Result<Option<[Vec<u8>; 2]>> {
        let slot = |fate| match fate {
            CommandFate::Running(RunningCommand { slot, .. }) => slot,
            CommandFate::NeverBegan | CommandFate::Exited(_) | CommandFate::Vanished(_) => None,
        };
        let Some(before) = slot(self.peek(id)?) else {
            return Ok(None);
        };
        let [out, err] = self.slot(before);
        let found = [(out, from[0]), (err, from[1])].map(|(path, from)| {
            let mut bytes = vec![0; PIECE];
            let read = File::open(path)?.read_at(&mut bytes, from)?;
            bytes.truncate(read);
            io::Result::Ok(bytes)
        });
        // The slot may have gone to another command while it was read.
        if slot(self.peek(id)?) != Some(before) {
            return Ok(None);
        }
        let [out, err] = found;
        Ok(Some([out?, err?]))
    }
}

#[cfg(test)]
mod tests;
