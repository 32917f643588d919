//! Files that hold the beginnings and ends of outputs, one after the other.
//!
//! A segment is filled and then left alone; bytes in it are never moved, written again or removed,
//! because journals elsewhere hold their places. Room is reserved first and filled then, so that one
//! long output does not hold up the others.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex};

use super::kept::KEPT;
use super::{Spool, SpooledOutput};
use crate::lock::locked;

/// When a segment is this long the next one begins.
const FULL: u64 = 64 << 20;
/// How much is copied at a time.
const CHUNK: usize = 256 << 10;

/// The segments of a spool, of which the last is written.
#[derive(Debug)]
pub(crate) struct Segments {
    spool: Spool,
    /// The one that is being filled, once there is one.
    last: Mutex<Option<Segment>>,
    /// The number it begins with.
    first: u32,
}

#[derive(Debug)]
struct Segment {
    number: u32,
    file: Arc<File>,
    /// Where room that nobody has reserved begins.
    length: u64,
}

impl Segments {
    /// Goes on after what the segments hold. What a keeper reserved and did not fill when it died
    /// stays a hole, or is not part of the file yet and is used now; nobody was told of it.
    ///
    /// The length of a file that was written during another boot means nothing: what was never synced
    /// may be missing, and a place behind it may be on record. Then the next segment begins.
    pub(crate) fn open(spool: &Spool, is_same_boot: bool) -> io::Result<Self> {
        let mut last = 0_u32;
        for entry in std::fs::read_dir(spool.segments())? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            last = last.max(number.unwrap_or_default());
        }
        let number = if is_same_boot {
            last
        } else {
            last.saturating_add(1)
        };
        Ok(Self {
            spool: spool.clone(),
            last: Mutex::new(None),
            first: number,
        })
    }

    /// Keeps the beginning and the end of a file: a mebibyte each, more of the beginning if asked.
    pub(crate) fn keep(&self, file: &File, head: u64) -> io::Result<SpooledOutput> {
        let length = file.metadata()?.len();
        let head = length.min(head.max(KEPT));
        let tail = length.saturating_sub(head).min(KEPT);
        let mut kept = SpooledOutput {
            length,
            head,
            tail,
            ..SpooledOutput::default()
        };
        if length == 0 {
            return Ok(kept);
        }
        let (segment, number, offset) = self.reserve(kept.stored())?;
        (kept.segment, kept.offset) = (number, offset);
        copy(file, 0, &segment, offset, head)?;
        let from = length.saturating_sub(tail);
        copy(file, from, &segment, offset.saturating_add(head), tail)?;
        Ok(kept)
    }

    fn reserve(&self, length: u64) -> io::Result<(Arc<File>, u32, u64)> {
        let mut last = locked(&self.last);
        // Made when something is to be kept: most commands write nothing.
        let mut current = match last.take() {
            Some(segment) => segment,
            None => Segment::open(&self.spool, self.first)?,
        };
        if current.length >= FULL {
            current = Segment::open(&self.spool, current.number.saturating_add(1))?;
        }
        let last = last.insert(current);
        let offset = last.length;
        last.length = last.length.saturating_add(length);
        Ok((Arc::clone(&last.file), last.number, offset))
    }
}

impl Spool {
    /// Keeps what comes next behind a segment, which need not be there any more: journals elsewhere may
    /// hold places in it, and those must not become places of something else.
    pub(crate) fn begin_behind(&self, segment: u32) -> io::Result<()> {
        Segment::open(self, segment.saturating_add(1)).map(|_| ())
    }
}

impl Segment {
    fn open(spool: &Spool, number: u32) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(spool.segment(number))?;
        let length = file.metadata()?.len();
        if length == 0 {
            // The one thing in a spool that is synced: a number that a crash of the machine took back
            // would be given twice, and a place on record would show the output of another attempt.
            // Some file systems cannot sync a folder; there is nothing better to be had there.
            drop(File::open(spool.segments())?.sync_all());
        }
        Ok(Self {
            number,
            file: Arc::new(file),
            length,
        })
    }
}

/// Copies so many bytes. What the file lost meanwhile (a command may cut its own output) is zeros.
fn copy(from: &File, mut at: u64, to: &File, mut target: u64, mut left: u64) -> io::Result<()> {
    let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
    let mut buffer = vec![0; most];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let chunk = buffer.get_mut(..wanted).unwrap_or_default();
        let read = match from.read_at(chunk, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let filled = if read == 0 {
            chunk.fill(0);
            wanted
        } else {
            read
        };
        to.write_all_at(chunk.get(..filled).unwrap_or_default(), target)?;
        let filled = u64::try_from(filled).unwrap_or_default();
        at = at.saturating_add(filled);
        target = target.saturating_add(filled);
        left = left.saturating_sub(filled);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
