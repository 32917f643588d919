//! A disk: what is synced, and what it may have of the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::crash_image::{FileChange, surviving_bytes};
use super::trace::{DATABASE, TraceEvent};
use crate::random::{SeededRandom, random_bytes};

/// What a disk makes of a sync. The first keeps its promise; the others show that a campaign notices a broken
/// one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SyncPromise {
    /// What was synced is safe
    #[default]
    Kept,
    /// Syncs do nothing, as with `synchronous=OFF`
    NoSync,
    /// The log is synced only before it is moved into the database, as with `synchronous=NORMAL`
    LateSync,
    /// A synced page may be lost all the same
    LostPage,
}

impl SyncPromise {
    /// The value on the command line.
    pub fn word(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[derive(Clone, Debug, Default)]
struct File {
    synced: Vec<u8>,
    since: Vec<FileChange>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedDisk {
    files: BTreeMap<usize, File>,
    names: BTreeMap<String, usize>,
    /// Names made and deleted since the folder was synced.
    renamed: Vec<(String, Option<usize>)>,
    /// The versions of the files beside the database, latest last.
    others: BTreeMap<PathBuf, Vec<Option<Vec<u8>>>>,
}

/// The files after a cut.
pub(super) type DiskImage<'a> = Vec<(PathBuf, Cow<'a, [u8]>)>;

impl SimulatedDisk {
    /// A disk on which these files are synced.
    pub(super) fn holding(image: &DiskImage<'_>) -> Self {
        let mut disk = Self::default();
        for (path, bytes) in image {
            let name = path.to_str().unwrap_or_default();
            if name.starts_with(DATABASE) && !name.ends_with("-shm") {
                let number = disk.files.len();
                disk.names.insert(name.to_owned(), number);
                disk.file(number).synced = bytes.to_vec();
            }
        }
        disk
    }

    /// The names as running processes see them, and the number of the next file.
    pub(super) fn current(&self) -> (BTreeMap<String, usize>, usize) {
        let mut names = self.names.clone();
        for (name, file) in &self.renamed {
            rename(&mut names, name, *file);
        }
        let given = self.renamed.iter().filter_map(|(_, file)| *file);
        let numbers = given.chain(self.names.values().copied());
        let last = numbers.chain(self.files.keys().copied()).max();
        (names, last.map_or(0, |last| last.saturating_add(1)))
    }

    /// The files as running processes see them.
    pub(super) fn as_written(&self) -> DiskImage<'_> {
        let names = self.current().0.into_iter();
        let files = names.map(|(name, number)| {
            let mut bytes = vec![];
            if let Some(file) = self.files.get(&number) {
                bytes.clone_from(&file.synced);
                file.since.iter().for_each(|change| change.make(&mut bytes));
            }
            (PathBuf::from(name), Cow::from(bytes))
        });
        let others = self.others.iter().filter_map(|(path, history)| {
            let latest = history.last()?.as_deref()?;
            Some((path.clone(), Cow::from(latest)))
        });
        files.chain(others).collect()
    }

    /// Replays the next event; `late` if it is a sync that `LateSync` leaves out.
    pub(super) fn play(&mut self, event: &TraceEvent, promise: SyncPromise, late: bool) {
        match event {
            TraceEvent::Write { file, at, bytes } => {
                let (at, bytes) = (*at, bytes.clone());
                self.file(*file).since.push(FileChange::Write { at, bytes });
            }
            TraceEvent::Resize { file, size } => self.file(*file).since.push(FileChange::Resize(*size)),
            TraceEvent::Sync { .. } | TraceEvent::FolderSync if promise == SyncPromise::NoSync => {}
            TraceEvent::Sync { .. } if promise == SyncPromise::LateSync && late => {}
            TraceEvent::Sync { file } => {
                let File { synced, since } = self.file(*file);
                since.drain(..).for_each(|change| change.make(synced));
            }
            TraceEvent::Named { name, file } => self.renamed.push((name.clone(), *file)),
            TraceEvent::FolderSync => {
                for (name, file) in self.renamed.drain(..) {
                    rename(&mut self.names, &name, file);
                }
            }
            TraceEvent::Beside { path, bytes } => {
                let history = self.others.entry(path.clone()).or_default();
                history.push(bytes.clone());
            }
            TraceEvent::Begun(_) | TraceEvent::Acknowledged(_) | TraceEvent::Found => {}
        }
    }

    fn file(&mut self, number: usize) -> &mut File {
        self.files.entry(number).or_default()
    }

    /// A state of SQLite's files after a power cut now.
    pub(super) fn cut(&self, random: &mut SeededRandom, promise: SyncPromise) -> DiskImage<'_> {
        let mut image = vec![];
        for (name, number) in self.named(random) {
            let mut found = match self.files.get(&number) {
                None => Cow::default(), // It was made, and nothing was written to it.
                Some(file) if file.since.is_empty() => Cow::Borrowed(file.synced.as_slice()),
                Some(file) => Cow::Owned(surviving_bytes(random, &file.synced, &file.since)),
            };
            if promise == SyncPromise::LostPage {
                lose_page(random, found.to_mut());
            }
            image.push((PathBuf::from(name), found));
        }
        if random.chance(1, 2) {
            let seed = random.between(0, u64::MAX);
            let index = random_bytes(seed, random.below(3).saturating_mul(16 << 10));
            image.push((PathBuf::from(format!("{DATABASE}-shm")), index.into()));
        }
        image
    }

    /// A state of the files beside the database. With a random source of its own: the order of owner files
    /// does not follow from the seed and must not change the rest.
    pub(super) fn others(&self, random: &mut SeededRandom) -> DiskImage<'_> {
        let files = self.others.iter();
        files.flat_map(|(path, history)| surviving_other(random, path, history)).collect()
    }

    /// The names that survive.
    fn named(&self, random: &mut SeededRandom) -> BTreeMap<String, usize> {
        let mut names = self.names.clone();
        let count = self.renamed.len();
        let manner = random.below(3);
        let mut reached: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, (name, file)) in self.renamed.iter().enumerate() {
            let reached = *reached.entry(name).or_insert_with(|| match manner {
                0 => 0,
                1 => count,
                _ => random.below(count.saturating_add(1)),
            });
            if number < reached {
                rename(&mut names, name, *file);
            }
        }
        names
    }
}

fn rename(names: &mut BTreeMap<String, usize>, name: &str, file: Option<usize>) {
    match file {
        Some(file) => names.insert(name.to_owned(), file),
        None => names.remove(name),
    };
}

/// Zeroes one page.
fn lose_page(random: &mut SeededRandom, file: &mut [u8]) {
    let pages = file.len().div_ceil(4096);
    let page = random.below(pages);
    if let Some(page) = file.chunks_mut(4096).nth(page) {
        page.fill(0);
    }
}

/// What survives of a file beside the database.
fn surviving_other<'a>(
    random: &mut SeededRandom,
    path: &Path,
    history: &'a [Option<Vec<u8>>],
) -> Vec<(PathBuf, Cow<'a, [u8]>)> {
    let latest = history.last().and_then(Option::as_deref);
    let found: Option<Cow<'_, [u8]>> = match random.below(16) {
        0..=1 => None,
        2..=3 => random.one_of(history).and_then(Option::as_deref).map(Cow::from),
        4..=5 => latest.map(|bytes| torn(random, bytes).into()),
        _ => latest.map(Cow::from),
    };
    let mut image = vec![];
    // A snapshot is written under another name first.
    if path.starts_with("snapshots") && random.chance(1, 8) {
        let half = path.with_extension("1.half");
        image.push((half, torn(random, latest.unwrap_or_default()).into()));
    }
    image.extend(found.map(|found| (path.to_owned(), found)));
    image
}

fn torn(random: &mut SeededRandom, bytes: &[u8]) -> Vec<u8> {
    let mut torn = bytes.to_vec();
    let (from, to) = random.part(torn.len(), 512);
    if random.chance(1, 2) {
        torn.truncate(from);
    } else if let Some(part) = torn.get_mut(from..to) {
        part.fill(0);
    }
    torn
}
