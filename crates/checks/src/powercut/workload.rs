//! The calls of a round, generated from its seed.

use std::collections::BTreeMap;
use std::path::Path;

use super::model::{AGGREGATES, AppendPart, RecordBytes, StoreModel};
use super::round::Recording;
use super::session::StoreSession;
use super::trace::Recorder;
use crate::random::SeededRandom;

const HANDLES: usize = 3;

/// Works on an empty folder and records it.
pub(super) fn recorded(seed: u64, folder: &Path) -> Result<Recording, String> {
    let recorder = Recorder::start(folder, BTreeMap::new(), 0);
    let mut work = Workload {
        session: StoreSession::begin(folder, Some(recorder.clone()), StoreModel::default(), 0),
        random: SeededRandom::new(seed),
        kind: WorkloadKind::of(seed),
    };
    let worked = work.run();
    work.session.end();
    let events = recorder.finish();
    worked?;
    Ok(Recording { calls: work.session.calls, events, ..Recording::default() })
}

/// Rounds differ, so that each is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkloadKind {
    /// Every kind of call, one after the other.
    Plain,
    /// Several handles write at once.
    Crowd,
    /// Records so long that the log is moved while the store works.
    Long,
    /// So many commits that the log is moved while the store works.
    Many,
}

impl WorkloadKind {
    fn of(seed: u64) -> Self {
        match seed % 16 {
            3 | 7 | 11 | 15 => Self::Crowd,
            5 => Self::Long,
            9 => Self::Many,
            _ => Self::Plain,
        }
    }
}

struct Workload {
    session: StoreSession,
    random: SeededRandom,
    kind: WorkloadKind,
}

impl Workload {
    fn run(&mut self) -> Result<(), String> {
        self.session.open(0)?;
        let most = match self.kind {
            WorkloadKind::Plain | WorkloadKind::Crowd => 50,
            // Cuts of these rounds are slow, and later calls show nothing that other rounds do not.
            WorkloadKind::Long => self.long().map(|()| 12)?,
            WorkloadKind::Many => self.many().map(|()| 12)?,
        };
        for _ in 0..self.random.between(10, most) {
            self.step()?;
        }
        Ok(())
    }

    /// More than the 4 MiB from which on an idle store moves its log.
    fn long(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            let index = self.random.below(AGGREGATES);
            let length = self.random.below(300 << 10).saturating_add(1 << 20);
            let records = vec![self.session.record(length), self.session.record(30)];
            let part = AppendPart { index, records, taken: vec![] };
            self.session.append(0, vec![part])?;
        }
        Ok(())
    }

    /// Each commit writes three pages; the log is moved at 1024.
    fn many(&mut self) -> Result<(), String> {
        for _ in 0..self.random.between(345, 360) {
            let part = AppendPart {
                index: self.random.below(AGGREGATES),
                records: vec![self.session.record(10)],
                taken: vec![],
            };
            self.session.append(0, vec![part])?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        self.session.open(0)?;
        let handles = self.session.open_handles();
        let handle = self.random.one_of(&handles).copied().unwrap_or(0);
        let index = self.random.below(AGGREGATES);
        let expected = self.session.model.of(index);
        match self.random.below(32) {
            12..=14 => self.append_in_one_commit(handle),
            15..=16 if self.kind == WorkloadKind::Crowd => self.append_concurrently(),
            17..=19 if !expected.records.is_empty() => self.session.request(handle, index),
            20..=21 => self.session.claim(handle, index),
            22 => {
                let closes = self.random.chance(1, 4);
                self.session.claim_writing_ahead(handle, index, closes)
            }
            23 => {
                let waiting = self.random.chance(1, 2);
                self.session.unclaim(index, waiting)
            }
            24 => self.session.remove(handle, index),
            25..=26 if !expected.records.is_empty() => {
                let at = self.random.below(expected.records.len().saturating_add(1));
                self.session.save(handle, index, at)
            }
            27 => {
                let stale = self.random.chance(1, 2);
                self.session.append_refused(handle, index, stale)
            }
            28 => {
                self.session.close(handle);
                Ok(())
            }
            29..=30 => self.session.open(self.random.below(HANDLES)),
            31 if self.random.chance(1, 3) => self.session.compact(handle),
            31 => {
                self.session.end();
                Ok(())
            }
            _ => {
                let parts = self.parts(0, 1);
                self.session.append(handle, parts)
            }
        }
    }

    fn append_in_one_commit(&mut self, handle: usize) -> Result<(), String> {
        let mut group = vec![];
        let mut taken = vec![];
        for _ in 0..self.random.between(3, 12) {
            let mut parts = self.parts(0, 1);
            for part in &mut parts {
                // An earlier append of the group takes the same requests.
                part.taken.retain(|id| !taken.contains(id));
                taken.extend(part.taken.iter().copied());
            }
            group.push(parts);
        }
        self.session.append_in_one_commit(handle, group)
    }

    fn append_concurrently(&mut self) -> Result<(), String> {
        for handle in 0..HANDLES {
            self.session.open(handle)?;
        }
        let mut crowd = vec![];
        for _ in 0..self.random.between(6, 24) {
            let handle = self.random.below(HANDLES);
            let mut parts = self.parts(handle, HANDLES);
            for part in &mut parts {
                part.taken.clear();
            }
            crowd.push((handle, parts));
        }
        self.session.append_concurrently(crowd)
    }

    /// Records for one to three of every `among`th aggregate from `first` on.
    fn parts(&mut self, first: usize, among: usize) -> Vec<AppendPart> {
        let count = self.random.below(6).saturating_sub(2).max(1);
        let mut parts: Vec<AppendPart> = vec![];
        for _ in 0..count {
            let choices: Vec<usize> = (first..AGGREGATES).step_by(among.max(1)).collect();
            let index = self.random.one_of(&choices).copied().unwrap_or(first);
            if parts.iter().any(|part| part.index == index) {
                continue;
            }
            let requests = self.session.model.of(index).requests;
            let taken = requests.into_keys().filter(|_| self.random.chance(1, 3)).collect();
            let records = (0..self.random.between(1, 4)).map(|_| self.record()).collect();
            parts.push(AppendPart { index, records, taken });
        }
        parts
    }

    fn record(&mut self) -> RecordBytes {
        let length = match self.random.below(40) {
            0 => self.random.between(20_000, 80_000),
            1..=5 => self.random.between(1000, 9000),
            _ => self.random.between(0, 300),
        };
        self.session.record(usize::try_from(length).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
