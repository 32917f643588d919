//! What is asked of a store in a round, by its seed.

use std::collections::BTreeMap;
use std::path::Path;

use super::moment::Recording;
use super::recorder::Recorder;
use super::session::Session;
use super::world::{Bytes, MOST, Part, World};
use crate::die::Die;

/// The most handles at a time.
const HANDLES: usize = 3;

/// Works on an empty folder and records it.
pub(super) fn recorded(seed: u64, folder: &Path) -> Result<Recording, String> {
    let recorder = Recorder::start(folder, BTreeMap::new(), 0);
    let mut work = Workload {
        session: Session::begin(folder, Some(recorder.clone()), World::default(), 0),
        die: Die::new(seed),
        kind: Kind::of(seed),
    };
    let worked = work.run();
    work.session.end();
    let events = recorder.finish();
    worked?;
    Ok(Recording { deeds: work.session.deeds, events, ..Recording::default() })
}

/// Rounds differ, so that each is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Everything, one thing after the other.
    Plain,
    /// Several handles write at once.
    Crowd,
    /// Records so long that the log is moved while the store works.
    Long,
    /// So many commits that the log is moved while the store works.
    Many,
}

impl Kind {
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
    session: Session,
    die: Die,
    kind: Kind,
}

impl Workload {
    fn run(&mut self) -> Result<(), String> {
        self.session.open(0)?;
        let most = match self.kind {
            Kind::Plain | Kind::Crowd => 50,
            // Every cut of these takes its time, and nothing comes later that others do not have.
            Kind::Long => self.long().map(|()| 12)?,
            Kind::Many => self.many().map(|()| 12)?,
        };
        for _ in 0..self.die.between(10, most) {
            self.step()?;
        }
        Ok(())
    }

    /// Past the 4 MiB from which on the log is moved when nobody waits.
    fn long(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            let who = self.die.below(MOST);
            let length = self.die.below(300 << 10).saturating_add(1 << 20);
            let records = vec![self.session.record(length), self.session.record(30)];
            let part = Part { who, records, taken: vec![] };
            self.session.append(0, vec![part])?;
        }
        Ok(())
    }

    /// Each commit counts for three pages; 1024 are worth moving.
    fn many(&mut self) -> Result<(), String> {
        for _ in 0..self.die.between(345, 360) {
            let part =
                Part { who: self.die.below(MOST), records: vec![self.session.record(10)], taken: vec![] };
            self.session.append(0, vec![part])?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        self.session.open(0)?;
        let handles = self.session.open_handles();
        let handle = self.die.one_of(&handles).copied().unwrap_or(0);
        let who = self.die.below(MOST);
        let known = self.session.world.of(who);
        match self.die.below(32) {
            12..=14 => self.group(handle),
            15..=16 if self.kind == Kind::Crowd => self.crowd(),
            17..=19 if !known.records.is_empty() => self.session.request(handle, who),
            20..=22 => self.session.claim(handle, who),
            23 => {
                let waiting = self.die.falls(1, 2);
                self.session.release(who, waiting)
            }
            24 => self.session.remove(handle, who),
            25..=26 if !known.records.is_empty() => {
                let at = self.die.below(known.records.len().saturating_add(1));
                self.session.save(handle, who, at)
            }
            27 => {
                let stale = self.die.falls(1, 2);
                self.session.refused(handle, who, stale)
            }
            28 => {
                self.session.close(handle);
                Ok(())
            }
            29..=30 => self.session.open(self.die.below(HANDLES)),
            31 if self.die.falls(1, 3) => self.session.compact(handle),
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

    fn group(&mut self, handle: usize) -> Result<(), String> {
        let mut group = vec![];
        let mut taken = vec![];
        for _ in 0..self.die.between(3, 12) {
            let mut parts = self.parts(0, 1);
            for part in &mut parts {
                // What an earlier one of the group takes is gone.
                part.taken.retain(|id| !taken.contains(id));
                taken.extend(part.taken.iter().copied());
            }
            group.push(parts);
        }
        self.session.group(handle, group)
    }

    fn crowd(&mut self) -> Result<(), String> {
        for handle in 0..HANDLES {
            self.session.open(handle)?;
        }
        let mut crowd = vec![];
        for _ in 0..self.die.between(6, 24) {
            let handle = self.die.below(HANDLES);
            let mut parts = self.parts(handle, HANDLES);
            for part in &mut parts {
                part.taken.clear();
            }
            crowd.push((handle, parts));
        }
        self.session.crowd(crowd)
    }

    /// Records for one to three aggregates, of every `among`th from `first` on.
    fn parts(&mut self, first: usize, among: usize) -> Vec<Part> {
        let count = self.die.below(6).saturating_sub(2).max(1);
        let mut parts: Vec<Part> = vec![];
        for _ in 0..count {
            let choices: Vec<usize> = (first..MOST).step_by(among.max(1)).collect();
            let who = self.die.one_of(&choices).copied().unwrap_or(first);
            if parts.iter().any(|part| part.who == who) {
                continue;
            }
            let requests = self.session.world.of(who).requests;
            let taken = requests.into_keys().filter(|_| self.die.falls(1, 3)).collect();
            let records = (0..self.die.between(1, 4)).map(|_| self.record()).collect();
            parts.push(Part { who, records, taken });
        }
        parts
    }

    fn record(&mut self) -> Bytes {
        let length = match self.die.below(40) {
            0 => self.die.between(20_000, 80_000),
            1..=5 => self.die.between(1000, 9000),
            _ => self.die.between(0, 300),
        };
        self.session.record(usize::try_from(length).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
