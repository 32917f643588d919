//! The kept output of an attempt: its beginning and its end.
//!
//! A [`SpooledOutput`] is a position in a segment and the length of the whole output, small enough for the
//! log and for messages; the bytes are read when they are needed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use minicbor::{Decode, Encode};

use super::Spool;

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
