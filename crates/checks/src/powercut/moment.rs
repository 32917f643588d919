//! What is known at one moment of a recording.

use std::collections::BTreeMap;

use super::disk::{Disk, Promise};
use super::inspect::Known;
use super::recorder::Event;
use super::world::{Deed, World};

/// The number of the database among the files of a recording: it is opened first.
const FIRST: usize = 0;

/// A disk, what was acknowledged by then, and what was asked and not yet acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) disk: Disk,
    pub(super) world: World,
    /// In order, for each handle.
    under_way: BTreeMap<usize, Vec<(usize, Deed)>>,
}

/// What was done to a folder.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// How it was at the beginning.
    pub(super) start: Moment,
    /// What the store was found to hold when it was opened for the first time.
    pub(super) found: World,
    /// What was asked.
    pub(super) deeds: Vec<Deed>,
    /// What happened.
    pub(super) events: Vec<Event>,
}

impl Moment {
    /// The moment at which a disk has all that it has written, and a store holds `world`.
    pub(super) fn settled(disk: Disk, world: World) -> Self {
        Self { disk, world, under_way: BTreeMap::new() }
    }

    /// What an inspection has to know.
    pub(super) fn known(&self) -> Known<'_> {
        let handles = self.under_way.values();
        let deeds = handles.map(|deeds| deeds.iter().map(|(_, deed)| deed).collect());
        Known { acknowledged: &self.world, under_way: deeds.collect() }
    }

    /// Goes on by the first of these events of a recording.
    pub(super) fn play(&mut self, recording: &Recording, from: &[Event], promise: Promise) {
        let Some(event) = from.first() else { return };
        self.disk.play(event, promise, is_late(event, from));
        match event {
            Event::Found => {
                self.world = recording.found.clone();
                self.under_way.clear();
            }
            Event::Begun(number) => {
                if let Some(deed) = recording.deeds.get(*number) {
                    let deeds = self.under_way.entry(deed.handle).or_default();
                    deeds.push((*number, deed.clone()));
                }
            }
            Event::Acknowledged(number) => {
                if let Some(deed) = recording.deeds.get(*number) {
                    let deeds = self.under_way.entry(deed.handle).or_default();
                    deeds.retain(|(other, _)| other != number);
                    self.world.apply(deed);
                }
            }
            _ => {}
        }
    }
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
