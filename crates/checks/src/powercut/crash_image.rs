//! What is left of a file after a power cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::random::{SeededRandom, random_bytes};

/// A change of a file that is not synced yet.
#[derive(Clone, Debug)]
pub(super) enum FileChange {
    Write { at: usize, bytes: Arc<Vec<u8>> },
    Resize(usize),
}

impl FileChange {
    pub(super) fn make(&self, file: &mut Vec<u8>) {
        match self {
            Self::Resize(size) => file.resize(*size, 0),
            Self::Write { at, bytes } => put(file, *at, bytes),
        }
    }

    fn length_after(&self, length: usize) -> usize {
        match self {
            Self::Resize(size) => *size,
            Self::Write { at, bytes } => length.max(at.saturating_add(bytes.len())),
        }
    }
}

fn put(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at.saturating_add(bytes.len());
    if file.len() < end {
        file.resize(end, 0);
    }
    if let Some(place) = file.get_mut(at..end) {
        place.copy_from_slice(bytes);
    }
}

/// What a disk has written of the changes when it is interrupted.
#[derive(Clone, Copy, Debug)]
enum CutManner {
    All,
    Nothing,
    /// The first changes, in order.
    InOrder(usize),
    /// Of every part all changes or none, with this many of sixteen parts written.
    Parts {
        of_sixteen: u64,
    },
}

/// A file after a cut, with a journaling file system or without.
pub(super) fn surviving_bytes(random: &mut SeededRandom, synced: &[u8], since: &[FileChange]) -> Vec<u8> {
    if since.iter().any(is_resize) && random.chance(1, 2) {
        cut_as_a_whole(random, synced, since)
    } else {
        cut_in_parts(random, synced, since)
    }
}

fn is_resize(change: &FileChange) -> bool {
    matches!(change, FileChange::Resize(_))
}

/// A resize happens as a whole or not at all, and later writes only if it did.
fn cut_as_a_whole(random: &mut SeededRandom, synced: &[u8], since: &[FileChange]) -> Vec<u8> {
    let mut rest = since;
    let mut file = None;
    while let Some(at) = rest.iter().position(is_resize) {
        let (before, after) = rest.split_at(at);
        let Some((resize, after)) = after.split_first().filter(|_| random.chance(1, 2)) else {
            rest = before;
            break;
        };
        let mut found = cut_in_parts(random, file.as_deref().unwrap_or(synced), before);
        resize.make(&mut found);
        (file, rest) = (Some(found), after);
    }
    cut_in_parts(random, file.as_deref().unwrap_or(synced), rest)
}

/// A resize happens part by part, and the length changes on its own.
fn cut_in_parts(random: &mut SeededRandom, synced: &[u8], since: &[FileChange]) -> Vec<u8> {
    let manner = match random.below(8) {
        0 => CutManner::All,
        1 => CutManner::Nothing,
        2 => CutManner::InOrder(random.below(since.len().saturating_add(1))),
        3 => CutManner::Parts { of_sixteen: 15 },
        4 => CutManner::Parts { of_sixteen: 1 },
        _ => CutManner::Parts { of_sixteen: 8 },
    };
    let mut found = SurvivingFile {
        file: synced.to_vec(),
        part: if random.chance(1, 2) { 512 } else { 4096 },
        reached: BTreeMap::new(),
        changes: since.len(),
        manner,
        tears: random.chance(1, 2),
        random,
    };
    let mut lengths = vec![synced.len()];
    let mut length = synced.len();
    for (number, change) in since.iter().enumerate() {
        found.take(number, change);
        length = change.length_after(length);
        lengths.push(length);
    }
    let reached = found.draw();
    let mut file = found.file;
    file.resize(lengths.get(reached).copied().unwrap_or(length), 0);
    file
}

struct SurvivingFile<'a> {
    random: &'a mut SeededRandom,
    file: Vec<u8>,
    /// The size of a part that is written atomically.
    part: usize,
    /// How many of the changes have reached each part.
    reached: BTreeMap<usize, usize>,
    changes: usize,
    manner: CutManner,
    tears: bool,
}

impl SurvivingFile<'_> {
    /// How many of the changes have reached the disk, for one part or for the length.
    fn draw(&mut self) -> usize {
        match self.manner {
            CutManner::All => self.changes,
            CutManner::Nothing => 0,
            CutManner::InOrder(reached) => reached,
            CutManner::Parts { of_sixteen } => {
                if self.random.chance(1, 6) {
                    self.random.below(self.changes.saturating_add(1))
                } else if self.random.chance(of_sixteen, 16) {
                    self.changes
                } else {
                    0
                }
            }
        }
    }

    fn reached(&mut self, part: usize) -> usize {
        if let Some(reached) = self.reached.get(&part) {
            return *reached;
        }
        let reached = self.draw();
        self.reached.insert(part, reached);
        reached
    }

    /// Applies a change to the parts that it has reached.
    fn take(&mut self, number: usize, change: &FileChange) {
        let (mut at, end) = match change {
            FileChange::Write { at, bytes } => (*at, at.saturating_add(bytes.len())),
            FileChange::Resize(size) => (*size, self.file.len()),
        };
        let begin = at;
        while at < end {
            let part = at.checked_div(self.part).unwrap_or(0);
            let next = part.saturating_add(1).saturating_mul(self.part).min(end);
            let reached = self.reached(part);
            if number < reached {
                let last = number.saturating_add(1) == reached && reached < self.changes;
                match change {
                    FileChange::Resize(_) => put(&mut self.file, at, &vec![0; next.saturating_sub(at)]),
                    FileChange::Write { bytes, .. } => {
                        let from = at.saturating_sub(begin);
                        let bytes = bytes.get(from..next.saturating_sub(begin));
                        self.write(at, bytes.unwrap_or_default(), last);
                    }
                }
            }
            at = next;
        }
    }

    /// Writes one part, perhaps torn if this is the last change that reached it.
    fn write(&mut self, at: usize, bytes: &[u8], last: bool) {
        let torn = self.tears && (last || self.random.chance(1, 24)) && !self.whole();
        if !torn {
            return put(&mut self.file, at, bytes);
        }
        if self.random.chance(1, 3) {
            let noise = random_bytes(self.random.between(0, u64::MAX), bytes.len());
            return put(&mut self.file, at, &noise);
        }
        let length = self.random.below(bytes.len());
        put(&mut self.file, at, bytes.get(..length).unwrap_or_default());
    }

    fn whole(&self) -> bool {
        matches!(self.manner, CutManner::All)
    }
}

#[cfg(test)]
mod tests;
