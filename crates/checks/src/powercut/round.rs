//! One recording, cut in many places.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::disk::{DiskImage, SimulatedDisk, SyncPromise};
use super::inspect::{ExpectedState, inspect};
use super::model::{StoreCall, StoreModel};
use super::trace::{Recorder, TraceEvent};
use super::workload;
use crate::random::SeededRandom;

/// A round, with its results.
#[derive(Clone, Debug)]
pub(super) struct PowercutRound {
    pub(super) seed: u64,
    pub(super) promise: SyncPromise,
    /// A folder of this round's own.
    pub(super) scratch: PathBuf,
    /// Where the files of the first violation are kept.
    pub(super) keep: Option<PathBuf>,
    pub(super) cuts: u64,
    pub(super) violations: Vec<String>,
}

/// A place of a recording.
struct CutPoint<'a> {
    /// The indexes of the events before the cut: of the recording, and of the recovery in it.
    path: Vec<usize>,
    last: Option<&'a TraceEvent>,
    state: &'a ReplayState,
}

impl PowercutRound {
    pub(super) fn play(&mut self) {
        let result = self.record_and_cut();
        self.violations.extend(result.err());
        // It is in memory, or in a folder that is removed with the campaign.
        let _ = fs::remove_dir_all(&self.scratch);
    }

    fn record_and_cut(&mut self) -> Result<(), String> {
        let folder = self.scratch.join("recorded");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let recording = workload::recorded(self.seed, &folder);
        let recording = recording.map_err(|what| format!("before any cut: {what}"))?;
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        self.walk(&recording, &[])
    }

    /// Replays a recording and cuts it. `path` are the cuts before it.
    fn walk(&mut self, recording: &Recording, path: &[usize]) -> Result<(), String> {
        let mut state = recording.start.clone();
        let mut random = SeededRandom::new(self.seed_of(path));
        let mut last = None;
        let mut number = 0_usize;
        for (index, event) in recording.events.iter().enumerate() {
            let from = recording.events.get(index..).unwrap_or_default();
            // The number of files beside the database is not determined by the seed, so they do not count.
            if !matches!(event, TraceEvent::Beside { .. }) {
                if is_cut(last, event, &mut random, path.is_empty()) {
                    self.cut(path, number, last, &state)?;
                }
                number += 1;
                last = Some(event);
            }
            state.play(recording, from, self.promise);
        }
        self.cut(path, number, last, &state)
    }

    fn cut(
        &mut self,
        path: &[usize],
        number: usize,
        last: Option<&TraceEvent>,
        state: &ReplayState,
    ) -> Result<(), String> {
        let place = CutPoint { path: path.iter().copied().chain([number]).collect(), last, state };
        let seed = self.seed_of(&place.path);
        let mut random = SeededRandom::new(seed);
        let mut image = state.disk.cut(&mut random, self.promise);
        image.extend(state.disk.others(&mut SeededRandom::new(!seed)));
        self.cuts += 1;
        // Some recoveries are recorded and cut too.
        let again = path.is_empty() && random.chance(1, 80);
        self.recover(&place, &image, again.then_some(CrashKind::PowerCut), &mut random)?;
        // Sometimes all processes die here, but not the machine; the power is cut later.
        if path.is_empty() && random.chance(1, 80) {
            let image = state.disk.as_written();
            self.recover(&place, &image, Some(CrashKind::Kill), &mut random)?;
        }
        Ok(())
    }

    /// Opens the files. With `after`, the recovery is recorded and cut too.
    fn recover(
        &mut self,
        place: &CutPoint<'_>,
        image: &DiskImage<'_>,
        after: Option<CrashKind>,
        random: &mut SeededRandom,
    ) -> Result<(), String> {
        let folder = self.scratch.join(format!("cut{}", place.path.len()));
        lay_out(&folder, image).map_err(|error| error.to_string())?;
        let start = after.map(|after| match after {
            CrashKind::Kill => place.state.clone(),
            CrashKind::PowerCut => {
                ReplayState::settled(SimulatedDisk::holding(image), place.state.model.clone())
            }
        });
        let recorder = start.as_ref().map(|start| {
            let (names, next) = start.disk.current();
            Recorder::start(&folder, names, next)
        });
        let inspected = inspect(&folder, &place.state.known(), recorder.clone(), random);
        let result = inspected.map(|(found, mut session)| {
            session.end();
            (found, session.calls)
        });
        let events = recorder.map(|recorder: Arc<Recorder>| recorder.finish());
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        match (result, start) {
            (Err(what), _) => {
                self.report(place, image, after, &what);
                Ok(())
            }
            (Ok(_), None) => Ok(()),
            (Ok((found, calls)), Some(mut start)) => {
                if let Some(CrashKind::PowerCut) = after {
                    // What the disk has is decided, so what the store holds is decided too.
                    start.model = found.clone();
                }
                let recording = Recording { start, found, calls, events: events.unwrap_or_default() };
                self.walk(&recording, &place.path)
            }
        }
    }

    fn report(&mut self, place: &CutPoint<'_>, image: &DiskImage<'_>, after: Option<CrashKind>, what: &str) {
        let event = named(place.last);
        let cut = match after {
            Some(CrashKind::Kill) => "killed",
            _ => "cut",
        };
        let mut text = format!("{cut} at {:?}, after {event}: {what}", place.path);
        if let (Some(keep), true) = (&self.keep, self.violations.is_empty()) {
            let folder = keep.join(format!("undaunted-powercut-{}", self.seed));
            text = match lay_out(&folder, image) {
                Ok(()) => format!("{text} (the files are in {})", folder.display()),
                Err(error) => format!("{text} (the files could not be kept: {error})"),
            };
        }
        self.violations.push(text);
    }

    /// The seed of a place.
    fn seed_of(&self, path: &[usize]) -> u64 {
        let first = self.seed ^ 0x517c_c1b7_2722_0a95;
        path.iter().fold(first, |hash, place| {
            let place = u64::try_from(*place).unwrap_or(u64::MAX).wrapping_add(1);
            (hash.rotate_left(5) ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

/// The crash that a recorded recovery follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrashKind {
    /// The disk has what it has.
    PowerCut,
    /// The kernel has everything, and the disk what was synced.
    Kill,
}

/// Whether to cut here: at every sync and name, and in between by chance.
fn is_cut(last: Option<&TraceEvent>, next: &TraceEvent, random: &mut SeededRandom, all: bool) -> bool {
    let boundary = |event: &TraceEvent| {
        matches!(
            event,
            TraceEvent::Sync { .. }
                | TraceEvent::FolderSync
                | TraceEvent::Named { .. }
                | TraceEvent::Resize { .. }
                | TraceEvent::Found
        )
    };
    let often = if last.is_some_and(boundary) || boundary(next) {
        16
    } else if matches!(last, Some(TraceEvent::Acknowledged(_))) {
        8
    } else {
        1
    };
    random.chance(often, if all { 16 } else { 32 })
}

fn named(event: Option<&TraceEvent>) -> String {
    match event {
        None => "nothing".to_owned(),
        Some(TraceEvent::Write { file, at, bytes }) => {
            format!("a write of {} bytes to file {file} at {at}", bytes.len())
        }
        Some(event) => format!("{event:?}"),
    }
}

fn lay_out(folder: &Path, image: &DiskImage<'_>) -> io::Result<()> {
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

/// The number of the database among the files of a recording: it is opened first.
const FIRST: usize = 0;

#[derive(Clone, Debug, Default)]
pub(super) struct ReplayState {
    pub(super) disk: SimulatedDisk,
    pub(super) model: StoreModel,
    /// In order, for each handle.
    under_way: BTreeMap<usize, Vec<(usize, StoreCall)>>,
}

/// Everything that was done to a folder.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) start: ReplayState,
    /// What the store held when it was opened for the first time.
    pub(super) found: StoreModel,
    pub(super) calls: Vec<StoreCall>,
    pub(super) events: Vec<TraceEvent>,
}

impl ReplayState {
    /// The state in which a disk has everything it was given, and the store holds `model`.
    pub(super) fn settled(disk: SimulatedDisk, model: StoreModel) -> Self {
        Self { disk, model, under_way: BTreeMap::new() }
    }

    /// What an inspection compares with.
    pub(super) fn known(&self) -> ExpectedState<'_> {
        let handles = self.under_way.values();
        let calls = handles.map(|calls| calls.iter().map(|(_, call)| call).collect());
        ExpectedState { acknowledged: &self.model, under_way: calls.collect() }
    }

    /// Replays the first of these events of a recording.
    pub(super) fn play(&mut self, recording: &Recording, from: &[TraceEvent], promise: SyncPromise) {
        let Some(event) = from.first() else { return };
        self.disk.play(event, promise, is_late(event, from));
        match event {
            TraceEvent::Found => {
                self.model = recording.found.clone();
                self.under_way.clear();
            }
            TraceEvent::Begun(number) => {
                if let Some(call) = recording.calls.get(*number) {
                    let calls = self.under_way.entry(call.handle).or_default();
                    calls.push((*number, call.clone()));
                }
            }
            TraceEvent::Acknowledged(number) => {
                if let Some(call) = recording.calls.get(*number) {
                    let calls = self.under_way.entry(call.handle).or_default();
                    calls.retain(|(other, _)| other != number);
                    self.model.apply(call);
                }
            }
            _ => {}
        }
    }
}

/// Whether `LateSync` leaves this sync out: only moving the log needs it later.
fn is_late(event: &TraceEvent, from: &[TraceEvent]) -> bool {
    let TraceEvent::Sync { file } = event else {
        return false;
    };
    let next = from.iter().find_map(|event| match event {
        TraceEvent::Write { file, .. } => Some(*file),
        _ => None,
    });
    *file != FIRST && next != Some(FIRST)
}
