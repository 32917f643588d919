//! What happened in a folder, in order.
//!
//! A write is done and recorded under one lock, and so is a sync: a recorded sync counts for all writes
//! before it and for no other. An acknowledgement is recorded after its sync.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) const DATABASE: &str = "undaunted.db";

#[derive(Clone, Debug)]
pub(super) enum TraceEvent {
    Write {
        file: usize,
        at: usize,
        bytes: Arc<Vec<u8>>,
    },
    Resize {
        file: usize,
        size: usize,
    },
    Sync {
        file: usize,
    },
    /// A name was made for a file, or deleted.
    Named {
        name: String,
        file: Option<usize>,
    },
    FolderSync,
    /// The new contents of a file that is not SQLite's; `None` if it is gone.
    Beside {
        path: PathBuf,
        bytes: Option<Vec<u8>>,
    },
    /// A call of the store, by number.
    Begun(usize),
    /// The acknowledgement of a call.
    Acknowledged(usize),
    /// The store was opened and read; from here on users rely on what it holds.
    Found,
}

#[derive(Debug, Default)]
pub(super) struct Trace {
    events: Vec<TraceEvent>,
    names: BTreeMap<String, usize>,
    files: usize,
    others: BTreeMap<PathBuf, Vec<u8>>,
}

impl Trace {
    pub(super) fn note(&mut self, event: TraceEvent) {
        self.events.push(event);
    }

    /// A file was opened, and created if it was not there. Returns its number.
    pub(super) fn opened(&mut self, name: &str) -> usize {
        if let Some(file) = self.names.get(name) {
            return *file;
        }
        let file = self.files;
        self.files = file.saturating_add(1);
        self.names.insert(name.to_owned(), file);
        self.note(TraceEvent::Named { name: name.to_owned(), file: Some(file) });
        if name == DATABASE {
            // The store has created it, empty, and synced the folder before SQLite opens it.
            self.note(TraceEvent::FolderSync);
        }
        file
    }

    pub(super) fn deleted(&mut self, name: &str) {
        if self.names.remove(name).is_some() {
            self.note(TraceEvent::Named { name: name.to_owned(), file: None });
        }
    }

    /// Records the changes of files beside SQLite's.
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

/// The files below a folder, without SQLite's.
fn collect(folder: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    // Files that vanish meanwhile are not counted.
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

/// Records one folder until it is finished.
#[derive(Debug)]
pub(super) struct Recorder {
    folder: PathBuf,
    trace: Mutex<Trace>,
}

static RECORDED: Mutex<BTreeMap<PathBuf, Arc<Recorder>>> = Mutex::new(BTreeMap::new());

fn recorded() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<Recorder>>> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn recorder_of(folder: &Path) -> Option<Arc<Recorder>> {
    recorded().get(folder).map(Arc::clone)
}

impl Recorder {
    /// Records a folder with these SQLite files, by number; the next new file gets the number `next`.
    pub(super) fn start(folder: &Path, names: BTreeMap<String, usize>, next: usize) -> Arc<Self> {
        let trace = Trace { names, files: next, ..Trace::default() };
        let recorder = Arc::new(Self { folder: folder.to_owned(), trace: Mutex::new(trace) });
        recorded().insert(folder.to_owned(), Arc::clone(&recorder));
        recorder
    }

    /// The trace, locked.
    pub(super) fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, event: TraceEvent) {
        self.trace().note(event);
    }

    pub(super) fn note_other_files(&self) {
        self.trace().note_other_files(&self.folder);
    }

    pub(super) fn finish(&self) -> Vec<TraceEvent> {
        recorded().remove(&self.folder);
        std::mem::take(&mut self.trace().events)
    }
}
