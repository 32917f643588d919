//! Files that hold the beginnings and ends of outputs, one after the other.
//!
//! A segment is filled and then left alone; it is removed when every attempt in it is forgotten.
//! Room is reserved first and filled then, so that one long output does not hold up the others.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex, PoisonError};

use super::kept::KEPT;
use super::{Entries, Kept, Spool};

/// When a segment is this long the next one begins.
const FULL: u64 = 64 << 20;
/// How much is copied at a time.
const CHUNK: usize = 256 << 10;

/// The segments of a spool.
#[derive(Debug)]
pub(crate) struct Segments {
    spool: Spool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: u32,
    file: Option<Arc<File>>,
    length: u64,
    /// How many outputs that are not forgotten lie in each segment.
    used: BTreeMap<u32, u64>,
}

impl Segments {
    /// Goes on after the segments these entries use; all others are removed.
    pub(crate) fn open(spool: &Spool, entries: &Entries) -> io::Result<Self> {
        let mut used = BTreeMap::<u32, u64>::new();
        let kept = entries.iter().filter_map(|(_, entry)| entry.kept());
        for kept in kept.flatten().filter(|kept| kept.stored() > 0) {
            let count = used.entry(kept.segment).or_default();
            *count = count.saturating_add(1);
        }
        for entry in std::fs::read_dir(spool.segments())? {
            let entry = entry?;
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            if !number.is_some_and(|number| used.contains_key(&number)) {
                std::fs::remove_file(entry.path())?;
            }
        }
        let last = used.keys().next_back().copied().unwrap_or_default();
        Ok(Self {
            spool: spool.clone(),
            state: Mutex::new(State {
                current: last.saturating_add(1),
                file: None,
                length: 0,
                used,
            }),
        })
    }

    /// Keeps the beginning and the end of a file: a mebibyte each, more of the beginning if asked.
    pub(crate) fn keep(&self, file: &File, head: u64) -> io::Result<Kept> {
        let length = file.metadata()?.len();
        let head = length.min(head.max(KEPT));
        let tail = length.saturating_sub(head).min(KEPT);
        let mut kept = Kept {
            length,
            head,
            tail,
            ..Kept::default()
        };
        if length == 0 {
            return Ok(kept);
        }
        let (segment, number, offset) = self.reserve(kept.stored())?;
        (kept.segment, kept.offset) = (number, offset);
        let copied = copy(file, 0, &segment, offset, head).and_then(|()| {
            let from = length.saturating_sub(tail);
            copy(file, from, &segment, offset.saturating_add(head), tail)
        });
        if let Err(error) = copied {
            self.forget(&kept);
            return Err(error);
        }
        Ok(kept)
    }

    /// Gives up the room of an output; the last one in a full segment removes it.
    pub(crate) fn forget(&self, kept: &Kept) {
        if kept.stored() == 0 {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = state.used.get_mut(&kept.segment) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count == 0 {
            state.used.remove(&kept.segment);
            if kept.segment == state.current {
                state.begin_again();
            } else {
                // If it stays, the next keeper removes it.
                drop(std::fs::remove_file(self.spool.segment(kept.segment)));
            }
        }
    }

    fn reserve(&self, length: u64) -> io::Result<(Arc<File>, u32, u64)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.file.is_some() && state.length >= FULL {
            state.file = None;
            state.current = state.current.saturating_add(1);
        }
        let file = if let Some(file) = &state.file {
            Arc::clone(file)
        } else {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(self.spool.segment(state.current))?;
            let file = Arc::new(file);
            state.file = Some(Arc::clone(&file));
            state.length = 0;
            file
        };
        let (number, offset) = (state.current, state.length);
        state.length = state.length.saturating_add(length);
        let count = state.used.entry(number).or_default();
        *count = count.saturating_add(1);
        Ok((file, number, offset))
    }
}

impl State {
    /// Nothing in the current segment is wanted any more. Not worth a thought while it is small:
    /// outputs come and go one by one.
    fn begin_again(&mut self) {
        let worth = self.length >= KEPT;
        if worth
            && self
                .file
                .as_ref()
                .is_some_and(|file| file.set_len(0).is_ok())
        {
            self.length = 0;
        }
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
