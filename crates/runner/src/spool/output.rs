//! The output of commands: the files that running commands write to, and what is kept of them.
//!
//! A command writes directly into its slot, a pair of files, without a process in between; slots are reused. The
//! beginning and the end of an output are kept in segments. Bytes in a segment are never moved, overwritten or
//! removed, since journals refer to their positions. Space is reserved first and filled afterwards, so that a long
//! output does not block others. A [`SpooledOutput`] is a position in a segment and the length of the whole output,
//! small enough for the log and for messages; the bytes are read when they are needed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex};

use minicbor::{Decode, Encode};

use super::Spool;
use crate::locked;

/// How many bytes of the beginning, and of the end, of an output are kept.
pub(crate) const KEPT: u64 = 1 << 20;

/// The most bytes that [`Spool::last_lines`] reads.
const LINES: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SpooledOutput {
    /// Bytes written in all.
    #[n(0)]
    pub length: u64,
    /// Bytes kept of the beginning.
    #[n(1)]
    pub head: u64,
    /// Bytes kept of the end, right behind the head. Bytes between head and tail may have been dropped.
    #[n(2)]
    pub tail: u64,
    /// With the offset this is a position that journals may store: it is valid as long as the spool exists,
    /// even after the attempt is forgotten.
    #[n(3)]
    pub segment: u32,
    #[n(4)]
    pub offset: u64,
}

impl SpooledOutput {
    pub const fn dropped(&self) -> u64 {
        self.length.saturating_sub(self.stored())
    }

    pub const fn stored(&self) -> u64 {
        self.head.saturating_add(self.tail)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// The beginning; the whole if nothing was dropped.
    pub head: Vec<u8>,
    /// Bytes missing after the head.
    pub dropped: u64,
    /// Empty if nothing was dropped.
    pub tail: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    #[error("the output has {length} bytes, more than the limit of {limit}")]
    TooLong { length: u64, limit: u64 },
    #[error("the output has {length} bytes, and {dropped} of them were not kept")]
    Dropped { length: u64, dropped: u64 },
    #[error("cannot read the kept output")]
    Unreadable(#[source] io::Error),
}

impl Spool {
    pub fn output(&self, kept: &SpooledOutput) -> io::Result<CommandOutput> {
        let dropped = kept.dropped();
        if dropped == 0 {
            let head = self.piece(kept, 0, kept.stored())?;
            return Ok(CommandOutput { head, ..CommandOutput::default() });
        }
        Ok(CommandOutput {
            head: self.piece(kept, 0, kept.head)?,
            dropped,
            tail: self.piece(kept, kept.head, kept.tail)?,
        })
    }

    /// The whole output, for a value that depends on every byte.
    pub fn capture(&self, kept: &SpooledOutput, limit: u64) -> Result<Vec<u8>, CaptureError> {
        let length = kept.length;
        if length > limit {
            return Err(CaptureError::TooLong { length, limit });
        }
        match kept.dropped() {
            0 => self.piece(kept, 0, kept.stored()).map_err(CaptureError::Unreadable),
            dropped => Err(CaptureError::Dropped { length, dropped }),
        }
    }

    /// The last lines of an output, for an error message: at most `lines` lines and 64 KiB, without the final
    /// line break. Invalid UTF-8 is replaced.
    pub fn last_lines(&self, kept: &SpooledOutput, lines: usize) -> io::Result<String> {
        let wanted = kept.stored().min(LINES);
        // If bytes were dropped, those before the tail do not belong to these lines.
        let wanted = match kept.dropped() {
            0 => wanted,
            _ => wanted.min(kept.tail),
        };
        let bytes = self.piece(kept, kept.stored().saturating_sub(wanted), wanted)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let mut last: Vec<&str> = text.rsplit('\n').take(lines).collect();
        last.reverse();
        Ok(last.join("\n"))
    }

    fn piece(&self, kept: &SpooledOutput, skip: u64, length: u64) -> io::Result<Vec<u8>> {
        if length == 0 {
            return Ok(vec![]);
        }
        let file = File::open(self.segment(kept.segment))?;
        // A damaged position must not allocate more than the file has.
        let end = kept.offset.saturating_add(skip).saturating_add(length);
        if end > file.metadata()?.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, kept.offset.saturating_add(skip))?;
        Ok(bytes)
    }
}

#[derive(Debug)]
pub(crate) struct OutputSlots {
    spool: Spool,
    state: Mutex<FreeSlots>,
}

#[derive(Debug, Default)]
struct FreeSlots {
    free: Vec<OutputSlot>,
    made: u32,
}

#[derive(Debug)]
pub(crate) struct OutputSlot {
    pub(crate) number: u32,
    pub(crate) out: File,
    pub(crate) err: File,
}

impl OutputSlots {
    /// Starts with no slots, and removes those of an earlier keeper.
    pub(crate) fn clear(spool: &Spool) -> io::Result<Self> {
        for entry in std::fs::read_dir(spool.slots())? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(Self { spool: spool.clone(), state: Mutex::default() })
    }

    pub(crate) fn take(&self) -> io::Result<OutputSlot> {
        let number = {
            let mut state = locked(&self.state);
            if let Some(slot) = state.free.pop() {
                return Ok(slot);
            }
            state.made = state.made.saturating_add(1);
            state.made
        };
        OutputSlot::create(&self.spool, number)
    }

    /// Makes the first slot ahead of its use. An error is reported when a slot is needed.
    pub(crate) fn prepare(&self) {
        // Locked all the time, so that a command that is about to begin waits for this slot.
        let mut state = locked(&self.state);
        if state.made == 0 {
            state.made = 1;
            let slot = OutputSlot::create(&self.spool, state.made);
            state.free.extend(slot);
        }
    }

    pub(crate) fn reuse(&self, slot: OutputSlot) {
        if slot.empty().is_err() {
            return self.discard(slot);
        }
        locked(&self.state).free.push(slot);
    }

    /// Removes a pair that a process may still write to. Its space is free when the last writer ends.
    pub(crate) fn discard(&self, slot: OutputSlot) {
        for path in self.spool.slot(slot.number) {
            // A file that stays is harmless: its number is never reused, and the next keeper clears the
            // folder.
            drop(std::fs::remove_file(path));
        }
        drop(slot);
    }
}

impl OutputSlot {
    fn create(spool: &Spool, number: u32) -> io::Result<Self> {
        let [out, err] = spool.slot(number);
        let open = |path| OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
        Ok(Self { number, out: open(out)?, err: open(err)? })
    }

    pub(crate) fn reopen(spool: &Spool, number: u32) -> io::Result<Self> {
        let [out, err] = spool.slot(number);
        Ok(Self { number, out: File::open(out)?, err: File::open(err)? })
    }

    pub(crate) fn written(&self) -> io::Result<u64> {
        let [out, err] = [self.out.metadata()?, self.err.metadata()?];
        Ok(out.len().saturating_add(err.len()))
    }

    fn empty(&self) -> io::Result<()> {
        for file in [&self.out, &self.err] {
            if file.metadata()?.len() > 0 {
                file.set_len(0)?;
            }
        }
        Ok(())
    }
}

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
        let entries = match std::fs::read_dir(spool.segments()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            entries => Some(entries?),
        };
        for entry in entries.into_iter().flatten() {
            let name = entry?.file_name();
            last = last.max(name.to_str().and_then(|name| name.parse().ok()).unwrap_or_default());
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
        DirBuilder::new().recursive(true).mode(0o700).create(spool.segments())?;
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
