//! Files that hold the beginnings and ends of outputs.
//!
//! Bytes in a segment are never moved, overwritten or removed, since journals refer to their positions. Space
//! is reserved first and filled afterwards, so that a long output does not block others.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex};

use super::output::KEPT;
use super::{Spool, SpooledOutput};
use crate::locked;

/// The length at which the next segment begins.
const FULL: u64 = 64 << 20;
const CHUNK: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct OutputSegments {
    spool: Spool,
    /// The segment that is being filled; none before the first output.
    last: Mutex<Option<OutputSegment>>,
    /// The number of the first segment to fill.
    first: u32,
}

#[derive(Debug)]
struct OutputSegment {
    number: u32,
    file: Arc<File>,
    /// Where unreserved space begins.
    length: u64,
}

impl OutputSegments {
    /// Continues after the last segment's content. Space that a dead keeper reserved and did not fill stays a
    /// hole, or is not part of the file yet and is reserved again; it was never reported to an engine.
    ///
    /// After another boot the length of a file means nothing: bytes that were never synced may be missing,
    /// and a journal may refer to a position after its end. So a new segment begins.
    pub(crate) fn open(spool: &Spool, is_same_boot: bool) -> io::Result<Self> {
        let mut last = 0_u32;
        for entry in std::fs::read_dir(spool.segments())? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            last = last.max(number.unwrap_or_default());
        }
        let number = if is_same_boot { last } else { last.saturating_add(1) };
        Ok(Self { spool: spool.clone(), last: Mutex::new(None), first: number })
    }

    /// Keeps a mebibyte each of the beginning and the end of a file, and at least `head` bytes of the
    /// beginning.
    pub(crate) fn keep(&self, file: &File, head: u64) -> io::Result<SpooledOutput> {
        let length = file.metadata()?.len();
        let head = length.min(head.max(KEPT));
        let tail = length.saturating_sub(head).min(KEPT);
        let mut kept = SpooledOutput { length, head, tail, ..SpooledOutput::default() };
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
        // Created only when needed, since most commands write nothing.
        let mut current = match last.take() {
            Some(segment) => segment,
            None => OutputSegment::open(&self.spool, self.first)?,
        };
        if current.length >= FULL {
            current = OutputSegment::open(&self.spool, current.number.saturating_add(1))?;
        }
        let last = last.insert(current);
        let offset = last.length;
        last.length = last.length.saturating_add(length);
        Ok((Arc::clone(&last.file), last.number, offset))
    }
}

impl Spool {
    /// Begins after a segment, which may be gone: journals may refer to positions in it, which must not be
    /// reused.
    pub(crate) fn begin_after(&self, segment: u32) -> io::Result<()> {
        OutputSegment::open(self, segment.saturating_add(1)).map(drop)
    }
}

impl OutputSegment {
    fn open(spool: &Spool, number: u32) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(spool.segment(number))?;
        let length = file.metadata()?.len();
        if length == 0 {
            // The only sync in a spool: if a crash of the machine lost the file, its number would be used
            // again, and a position on record would show the output of another attempt. An error is ignored,
            // since some file systems cannot sync a folder.
            drop(File::open(spool.segments())?.sync_all());
        }
        Ok(Self { number, file: Arc::new(file), length })
    }
}

/// Copies `left` bytes. If the file has become shorter (a command may truncate its output), the rest is
/// zeros.
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
