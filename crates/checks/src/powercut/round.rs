//! One recording, cut in many places.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::disk::{Disk, Image, Promise};
use super::inspect::{Known, inspect};
use super::recorder::{DATABASE, Event, Recorder};
use super::workload;
use super::world::{Deed, World};
use crate::die::Die;

/// What was done to a folder, from the files that were there.
#[derive(Debug)]
pub(super) struct Recording {
    /// SQLite's files at the beginning; the database is the first.
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// What the store held then.
    pub(super) before: World,
    /// What was asked.
    pub(super) deeds: Vec<Deed>,
    /// What happened.
    pub(super) events: Vec<Event>,
}

/// The number of the database among the files of a recording: it is opened first.
const FIRST: usize = 0;

/// How a round is played.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) seed: u64,
    pub(super) promise: Promise,
    /// A folder of this round's own.
    pub(super) scratch: PathBuf,
    /// Where the files of the first cut that went wrong are left.
    pub(super) keep: Option<PathBuf>,
    pub(super) cuts: u64,
    /// What went wrong.
    pub(super) wrong: Vec<String>,
}

impl Round {
    /// Records, and cuts.
    pub(super) fn play(&mut self) {
        if let Err(what) = self.record_and_cut() {
            self.wrong.push(what);
        }
    }

    fn record_and_cut(&mut self) -> Result<(), String> {
        let folder = self.scratch.join("recorded");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let recording = workload::recorded(self.seed, &folder);
        let removed = fs::remove_dir_all(&folder);
        let recording = recording.map_err(|what| format!("before any cut: {what}"))?;
        removed.map_err(|error| error.to_string())?;
        self.walk(&recording, &mut vec![])
    }

    /// Plays a recording and cuts it. `path` says where those before it were cut.
    fn walk(&mut self, recording: &Recording, path: &mut Vec<usize>) -> Result<(), String> {
        let mut disk = Disk::with(&recording.files);
        let mut world = recording.before.clone();
        let mut under_way: BTreeMap<usize, VecDeque<usize>> = BTreeMap::new();
        let mut die = Die::new(self.seed.wrapping_add(hash(path)));
        let mut last = None;
        for (place, event) in recording.events.iter().enumerate() {
            if is_cut(last, Some(event), &mut die, path.is_empty()) {
                path.push(place);
                self.cut(recording, &disk, &world, &under_way, path)?;
                path.pop();
            }
            let late = is_late(event, recording.events.get(place..).unwrap_or_default());
            disk.play(event, self.promise, late);
            if let Event::Begun(number) | Event::Acknowledged(number) = event
                && let Some(deed) = recording.deeds.get(*number)
            {
                let deeds = under_way.entry(deed.handle).or_default();
                if matches!(event, Event::Begun(_)) {
                    deeds.push_back(*number);
                } else {
                    deeds.retain(|other| other != number);
                    world.apply(deed);
                }
            }
            last = Some(event);
        }
        path.push(recording.events.len());
        self.cut(recording, &disk, &world, &under_way, path)?;
        path.pop();
        Ok(())
    }

    fn cut(
        &mut self,
        recording: &Recording,
        disk: &Disk,
        acknowledged: &World,
        under_way: &BTreeMap<usize, VecDeque<usize>>,
        path: &mut Vec<usize>,
    ) -> Result<(), String> {
        let seed = self.seed.wrapping_add(hash(path));
        let mut die = Die::new(seed);
        let mut image = disk.cut(&mut die, self.promise);
        image.extend(disk.beside(&mut Die::new(!seed)));
        let folder = self.scratch.join(format!("cut{}", path.len()));
        lay_out(&folder, &image).map_err(|error| error.to_string())?;
        let deeds = |numbers: &VecDeque<usize>| {
            let numbers = numbers.iter();
            numbers.filter_map(|it| recording.deeds.get(*it)).collect()
        };
        let known = Known {
            acknowledged,
            under_way: under_way.values().map(deeds).collect(),
        };
        self.cuts = self.cuts.saturating_add(1);
        // One recovery in a while is recorded, and cut in its turn.
        let again = path.len() == 1 && die.falls(1, 60);
        let files = if again { databases(&image) } else { vec![] };
        let recorder = again.then(|| Recorder::start(&folder, &files));
        let inspected = inspect(&folder, &known, recorder.clone(), &mut die);
        let (before, deeds) = match inspected {
            Ok((before, mut session)) => {
                session.end();
                (before, session.deeds)
            }
            Err(what) => {
                recorder.inspect(|recorder| drop(recorder.finish()));
                self.report(recording, path, &image, &what);
                return fs::remove_dir_all(&folder).map_err(|error| error.to_string());
            }
        };
        let events = recorder.map(|recorder| recorder.finish());
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        match events {
            None => Ok(()),
            Some(events) => {
                let recovery = Recording {
                    files,
                    before,
                    deeds,
                    events,
                };
                self.walk(&recovery, path)
            }
        }
    }

    fn report(&mut self, recording: &Recording, path: &[usize], image: &Image<'_>, what: &str) {
        let place = path.last().copied().unwrap_or(0);
        let before = place
            .checked_sub(1)
            .and_then(|last| recording.events.get(last));
        let mut text = format!("cut at {path:?}, after {}: {what}", named(before));
        if let (Some(keep), true) = (&self.keep, self.wrong.is_empty()) {
            let folder = keep.join(format!("undaunted-powercut-{}", self.seed));
            text = match lay_out(&folder, image) {
                Ok(()) => format!("{text} (the files are in {})", folder.display()),
                Err(error) => format!("{text} (the files could not be kept: {error})"),
            };
        }
        self.wrong.push(text);
    }
}

/// Whether the power is cut here: around every sync and name, and in between by chance.
fn is_cut(last: Option<&Event>, next: Option<&Event>, die: &mut Die, all: bool) -> bool {
    let boundary = |event: &Event| {
        matches!(
            event,
            Event::Sync { .. } | Event::FolderSync | Event::Named { .. } | Event::Resize { .. }
        )
    };
    let acknowledged = matches!(last, Some(Event::Acknowledged(_)));
    let often = if last.is_some_and(boundary) || next.is_some_and(boundary) {
        16
    } else if acknowledged {
        8
    } else {
        1
    };
    die.falls(often, if all { 16 } else { 32 })
}

/// Whether this is a sync that would come later if only moving the log had to be safe.
fn is_late(event: &Event, from: &[Event]) -> bool {
    let Event::Sync { file } = event else {
        return false;
    };
    let next = from.iter().find_map(|event| match event {
        Event::Write { file, .. } => Some(*file),
        _ => None,
    });
    *file != FIRST && next != Some(FIRST)
}

/// A number for a series of places.
fn hash(path: &[usize]) -> u64 {
    path.iter()
        .fold(0x51_7c_c1_b7_27_22_0a_95, |hash: u64, place| {
            let place = u64::try_from(*place).unwrap_or(u64::MAX).wrapping_add(1);
            (hash.rotate_left(5) ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
}

fn named(event: Option<&Event>) -> String {
    match event {
        None => "nothing".to_owned(),
        Some(Event::Write { file, at, bytes }) => {
            format!("a write of {} bytes to file {file} at {at}", bytes.len())
        }
        Some(Event::Beside { path, .. }) => format!("a change of {}", path.display()),
        Some(event) => format!("{event:?}"),
    }
}

/// Those of SQLite's files that are not made anew, the database first.
fn databases(image: &Image<'_>) -> Vec<(String, Vec<u8>)> {
    let index = format!("{DATABASE}-shm");
    let mut files: Vec<(String, Vec<u8>)> = image
        .iter()
        .filter_map(|(path, bytes)| Some((path.to_str()?.to_owned(), bytes.to_vec())))
        .filter(|(name, _)| name.starts_with(DATABASE) && *name != index)
        .collect();
    files.sort();
    files
}

/// Writes files into a folder of their own.
fn lay_out(folder: &Path, image: &[(PathBuf, Cow<'_, [u8]>)]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (path, bytes) in image {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(())
}
