//! The state at one moment of a replayed recording.

use std::collections::BTreeMap;

use super::disk::{Disk, SyncPromise};
use super::inspect::ExpectedState;
use super::model::{StoreCall, StoreModel};
use super::trace::TraceEvent;

/// The number of the database among the files of a recording: it is opened first.
const FIRST: usize = 0;

#[derive(Clone, Debug, Default)]
pub(super) struct ReplayState {
    pub(super) disk: Disk,
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
    pub(super) fn settled(disk: Disk, model: StoreModel) -> Self {
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
