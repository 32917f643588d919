//! The log of a spool: appended to, read as a whole, and started anew when most of it is forgotten.
//!
//! A record is in the system's hands when `append` returns, so it survives the death of every
//! process of ours. It is not synced: what the machine's own death would lose is noticed by the boot
//! id, and then nothing in the spool is believed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Damage, Entries, Header, Record, Spool};
use crate::failpoint;

/// Below this length a log is not worth writing anew.
const SMALL: u64 = 256 << 10;

/// An open log, and what it says.
#[derive(Debug)]
pub(crate) struct Log {
    spool: Spool,
    file: File,
    length: u64,
    /// When it gets longer than this it is written anew.
    worth: u64,
    header: Header,
    entries: Entries,
    /// Whether something is known that the file does not say, or says only in part.
    is_behind: bool,
}

/// A log as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Story {
    pub(crate) header: Header,
    pub(crate) entries: Entries,
    pub(crate) damage: Option<Damage>,
}

impl Log {
    /// Writes a log with these entries in the place of the one that is there.
    pub(crate) fn create(spool: &Spool, header: Header, entries: Entries) -> io::Result<Self> {
        let content = written(&header, &entries);
        let next = spool.log().with_extension("next");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&next)?;
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
            worth: length.saturating_mul(2).max(SMALL),
            header,
            entries,
            is_behind: false,
        })
    }

    /// Adds a record before what it announces is done. If it cannot be written, the log is as it
    /// was, and the thing must not be done.
    pub(crate) fn announce(&mut self, record: &Record) -> io::Result<()> {
        if self.is_behind {
            self.renew()?;
        }
        self.write(record)?;
        self.entries.apply(record);
        Ok(())
    }

    /// Adds a record of what has happened. If it cannot be written now, it is with the next one.
    pub(crate) fn note(&mut self, record: &Record) {
        self.entries.apply(record);
        if self.is_behind || self.length > self.worth {
            // Failing leaves the old log in place; the next record tries again.
            self.is_behind = self.renew().is_err();
        } else {
            self.is_behind = self.write(record).is_err();
        }
    }

    /// From now on, what stands nowhere never began.
    pub(crate) fn trust(&mut self) -> io::Result<()> {
        if self.header.uncertain {
            self.header.uncertain = false;
            self.renew()?;
        }
        Ok(())
    }

    pub(crate) fn is_uncertain(&self) -> bool {
        self.header.uncertain
    }

    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let framed = record.framed();
        if let Err(error) = self.file.write_all(&framed) {
            // Half a record would hide everything behind it.
            self.is_behind = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        let written = u64::try_from(framed.len()).unwrap_or(u64::MAX);
        self.length = self.length.saturating_add(written);
        Ok(())
    }

    fn renew(&mut self) -> io::Result<()> {
        *self = Self::create(&self.spool, self.header.clone(), self.entries.clone())?;
        Ok(())
    }
}

/// What is found where a log should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A file that does not even begin as a log of this version does.
    Garbage(Damage),
    Log(Story),
}

impl Found {
    /// Reads the log at `path` as far as it can be read.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let content = match std::fs::read(path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(error),
        };
        Ok(Self::in_file(&content))
    }

    /// The same for what stands in the file.
    fn in_file(content: &[u8]) -> Self {
        let mut rest = content;
        let damage = |rest: &[u8]| Damage {
            offset: count(content.len().saturating_sub(rest.len())),
            unread: count(rest.len()),
        };
        let Some(Record::Header(header)) = Record::take_framed(&mut rest) else {
            return Self::Garbage(damage(content));
        };
        let mut story = Story {
            header,
            entries: Entries::default(),
            damage: None,
        };
        while !rest.is_empty() {
            let Some(record) = Record::take_framed(&mut rest) else {
                story.damage = Some(damage(rest));
                break;
            };
            story.entries.apply(&record);
        }
        Self::Log(story)
    }
}

/// A whole log that says no more than it has to.
fn written(header: &Header, entries: &Entries) -> Vec<u8> {
    let mut content = Record::Header(header.clone()).framed();
    for record in entries.records() {
        content.extend_from_slice(&record.framed());
    }
    content
}

/// Reads a log as it stands in its file and writes it anew, and says where it was damaged. What stands
/// in it is nobody's business: this is for fuzzing.
///
/// # Errors
///
/// When it does not even begin as a log does.
#[doc(hidden)]
pub fn reread_log(content: &[u8]) -> Result<(Vec<u8>, Option<Damage>), Damage> {
    match Found::in_file(content) {
        Found::Log(story) => Ok((written(&story.header, &story.entries), story.damage)),
        Found::Garbage(damage) => Err(damage),
        // A file that is not there has no content.
        Found::Nothing => Ok((vec![], None)),
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
