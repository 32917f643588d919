//! What happened in a folder, in order.
//!
//! A write is done and noted under one lock, and so is a sync: a sync in the recording counts for all
//! writes before it, and for no other. What is acknowledged is noted after it was synced.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of the database in a store's folder.
pub(super) const DATABASE: &str = "undaunted.db";

/// One thing that happened.
#[derive(Clone, Debug)]
pub(super) enum TraceEvent {
    /// Bytes were written to a file.
    Write { file: usize, at: usize, bytes: Arc<Vec<u8>> },
    /// A file was given another length.
    Resize { file: usize, size: usize },
    /// A file was synced.
    Sync { file: usize },
    /// A name was given to a file, or deleted.
    Named { name: String, file: Option<usize> },
    /// The folder was synced.
    FolderSync,
    /// A file that is not SQLite's has these bytes now, or is gone.
    Beside { path: PathBuf, bytes: Option<Vec<u8>> },
    /// Something was asked of the store.
    Begun(usize),
    /// It was acknowledged.
    Acknowledged(usize),
    /// The store was opened and read; what it holds is relied upon from here on.
    Found,
}

/// The recording of a folder.
#[derive(Debug, Default)]
pub(super) struct Trace {
    events: Vec<TraceEvent>,
    names: BTreeMap<String, usize>,
    files: usize,
    others: BTreeMap<PathBuf, Vec<u8>>,
}

impl Trace {
    /// Notes an event.
    pub(super) fn note(&mut self, event: TraceEvent) {
        self.events.push(event);
    }

    /// A file was opened, and made if it was not there. Gives its number.
    pub(super) fn opened(&mut self, name: &str) -> usize {
        if let Some(file) = self.names.get(name) {
            return *file;
        }
        let file = self.files;
        self.files = file.saturating_add(1);
        self.names.insert(name.to_owned(), file);
        self.note(TraceEvent::Named { name: name.to_owned(), file: Some(file) });
        if name == DATABASE {
            // The store has made it itself, empty, and synced the folder before SQLite saw it.
            self.note(TraceEvent::FolderSync);
        }
        file
    }

    /// A file was deleted.
    pub(super) fn deleted(&mut self, name: &str) {
        if self.names.remove(name).is_some() {
            self.note(TraceEvent::Named { name: name.to_owned(), file: None });
        }
    }

    /// Notes what has changed beside SQLite's files.
    fn note_other_files(&mut self, folder: &Path) {
        let mut found = BTreeMap::new();
        collect(folder, Path::new(""), &mut found);
        let before = std::mem::take(&mut self.others);
        for path in before.keys().filter(|path| !found.contains_key(*path)) {
            self.events.push(TraceEvent::Beside { path: path.clone(), bytes: None });
        }
        for (path, bytes) in &found {
            if before.get(path) != Some(bytes) {
                self.events.push(TraceEvent::Beside { path: path.clone(), bytes: Some(bytes.clone()) });
            }
        }
        self.others = found;
    }
}

/// The files below a folder, but for SQLite's.
fn collect(folder: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    // What goes away meanwhile was not there for long.
    for entry in fs::read_dir(folder.join(below)).into_iter().flatten().flatten() {
        let path = below.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(folder, &path, found);
        } else if !path.to_string_lossy().starts_with(DATABASE)
            && let Ok(bytes) = fs::read(entry.path())
        {
            found.insert(path, bytes);
        }
    }
}

/// Records one folder, until it is finished or dropped by all.
#[derive(Debug)]
pub(super) struct Recorder {
    folder: PathBuf,
    trace: Mutex<Trace>,
}

static RECORDED: Mutex<BTreeMap<PathBuf, Arc<Recorder>>> = Mutex::new(BTreeMap::new());

fn recorded() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<Recorder>>> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recorder of a folder.
pub(super) fn recorder_of(folder: &Path) -> Option<Arc<Recorder>> {
    recorded().get(folder).map(Arc::clone)
}

impl Recorder {
    /// Records a folder, which has these files of SQLite's already, by their numbers; the next one made
    /// has the number `next`.
    pub(super) fn start(folder: &Path, names: BTreeMap<String, usize>, next: usize) -> Arc<Self> {
        let trace = Trace { names, files: next, ..Trace::default() };
        let recorder = Arc::new(Self { folder: folder.to_owned(), trace: Mutex::new(trace) });
        recorded().insert(folder.to_owned(), Arc::clone(&recorder));
        recorder
    }

    /// The tape, for one who writes on it.
    pub(super) fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an event.
    pub(super) fn note(&self, event: TraceEvent) {
        self.trace().note(event);
    }

    /// Notes what has changed beside SQLite's files.
    pub(super) fn note_other_files(&self) {
        self.trace().note_other_files(&self.folder);
    }

    /// Ends the recording, and gives it.
    pub(super) fn finish(&self) -> Vec<TraceEvent> {
        recorded().remove(&self.folder);
        std::mem::take(&mut self.trace().events)
    }
}
