//! What is kept of an attempt's output: the beginning and the end.
//!
//! A place in a segment, and how much the command wrote in all. The bytes themselves are read by
//! whoever needs them; a place is small enough to stand in the log and in a message.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use minicbor::{Decode, Encode};

use super::Spool;

/// How much of the beginning and of the end of an output is kept: a mebibyte each.
pub(crate) const KEPT: u64 = 1 << 20;

/// The most bytes that [`Spool::last_lines`] looks at.
const LINES: u64 = 64 << 10;

/// Where the beginning and the end of an output lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SpooledOutput {
    /// How many bytes were written.
    #[n(0)]
    pub length: u64,
    /// How many bytes of the beginning are kept.
    #[n(1)]
    pub head: u64,
    /// How many bytes of the end are kept, right behind the head. The whole is head and tail unless
    /// something between them was dropped.
    #[n(2)]
    pub tail: u64,
    /// The number of the segment that holds it. With the offset this is its place, which journals may
    /// store: it is good for as long as the spool is there, also when the attempt is forgotten.
    #[n(3)]
    pub segment: u32,
    /// The byte of the segment at which the head begins.
    #[n(4)]
    pub offset: u64,
}

impl SpooledOutput {
    /// How many bytes between head and tail were dropped.
    pub const fn dropped(&self) -> u64 {
        self.length.saturating_sub(self.stored())
    }

    /// How many bytes are kept.
    pub const fn stored(&self) -> u64 {
        self.head.saturating_add(self.tail)
    }
}

/// What is kept of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The beginning; the whole if nothing was dropped.
    pub head: Vec<u8>,
    /// How many bytes are missing after it.
    pub dropped: u64,
    /// The end, if something was dropped.
    pub tail: Vec<u8>,
}

/// Why an output cannot be had as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It is longer than asked for.
    #[error("the output has {length} bytes, {limit} is the most")]
    TooLong { length: u64, limit: u64 },
    /// It was not kept as a whole.
    #[error("the output has {length} bytes, and {dropped} of them were not kept")]
    Dropped {
        length: u64,
        /// The bytes between head and tail.
        dropped: u64,
    },
    /// The spool cannot be read.
    #[error("the kept output cannot be read")]
    Unreadable(#[source] io::Error),
}

impl Spool {
    pub fn output(&self, kept: &SpooledOutput) -> io::Result<Output> {
        let dropped = kept.dropped();
        if dropped == 0 {
            let head = self.piece(kept, 0, kept.stored())?;
            return Ok(Output {
                head,
                ..Output::default()
            });
        }
        Ok(Output {
            head: self.piece(kept, 0, kept.head)?,
            dropped,
            tail: self.piece(kept, kept.head, kept.tail)?,
        })
    }

    /// The whole of an output, for a value that depends on every byte.
    pub fn capture(&self, kept: &SpooledOutput, limit: u64) -> Result<Vec<u8>, CaptureError> {
        let length = kept.length;
        if length > limit {
            return Err(CaptureError::TooLong { length, limit });
        }
        match kept.dropped() {
            0 => self
                .piece(kept, 0, kept.stored())
                .map_err(CaptureError::Unreadable),
            dropped => Err(CaptureError::Dropped { length, dropped }),
        }
    }

    /// The last lines of an output, for the text of an error: at most so many lines and 64 KiB,
    /// without the line break at the end. What is not UTF-8 is replaced.
    pub fn last_lines(&self, kept: &SpooledOutput, lines: usize) -> io::Result<String> {
        let wanted = kept.stored().min(LINES);
        // If something was dropped, what is before the tail does not belong to these lines.
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
        // A length from a damaged place must not take memory the file does not fill.
        let end = kept.offset.saturating_add(skip).saturating_add(length);
        if end > file.metadata()?.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, kept.offset.saturating_add(skip))?;
        Ok(bytes)
    }
}
