//! Calls on a real store, recorded with their acknowledgements.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use undaunted_store::{
    Append, AppendError, Claim, Epoch, RequestId, SqliteOptions, SqliteStore, Store as _, Version,
};

use super::model::{AppendPart, RecordBytes, StoreCall, StoreModel, StoreOperation, aggregate};
use super::trace::{Recorder, TraceEvent};
use crate::random::random_bytes;

type AppendAnswer = (usize, Result<Vec<Version>, AppendError>);

/// The folder of a store, its open handles, and the calls.
pub(super) struct StoreSession {
    folder: PathBuf,
    recorder: Option<Arc<Recorder>>,
    handles: BTreeMap<usize, SqliteStore>,
    claims: BTreeMap<usize, (usize, Claim)>,
    serial: u64,
    pub(super) calls: Vec<StoreCall>,
    /// What the store should hold once all calls are acknowledged.
    pub(super) model: StoreModel,
}

/// An error with its causes.
pub(super) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The bytes that `save` stores, from which a check knows what to expect.
pub(super) fn snapshot(index: usize, at: usize, records: &[RecordBytes]) -> Vec<u8> {
    let last = at.checked_sub(1).and_then(|last| records.get(last));
    let mut bytes = format!("{index} at {at}: ").into_bytes();
    bytes.extend(last.map(|last| last.as_slice()).unwrap_or_default());
    bytes
}

fn version(records: usize) -> Version {
    Version::EMPTY.after(records)
}

impl StoreSession {
    /// Opens a session on a store that holds `model`. Records are numbered from `serial`.
    pub(super) fn begin(
        folder: &Path,
        recorder: Option<Arc<Recorder>>,
        model: StoreModel,
        serial: u64,
    ) -> Self {
        let session = Self {
            folder: folder.to_owned(),
            recorder,
            handles: BTreeMap::new(),
            claims: BTreeMap::new(),
            serial,
            calls: vec![],
            model,
        };
        session.note_other_files();
        session
    }

    pub(super) fn note(&self, event: TraceEvent) {
        if let Some(recorder) = &self.recorder {
            recorder.note(event);
        }
    }

    fn note_other_files(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.note_other_files();
        }
    }

    /// Opens a handle, unless it is open.
    pub(super) fn open(&mut self, handle: usize) -> Result<(), String> {
        if self.handles.contains_key(&handle) {
            return Ok(());
        }
        // Locks are held briefly, so a wait of a minute is a deadlock.
        let options = SqliteOptions { patience: Duration::from_mins(1) };
        let store = SqliteStore::open_with(&self.folder, &options);
        let store = store.map_err(|error| format!("the store does not open: {}", error_chain(&error)))?;
        self.handles.insert(handle, store);
        self.note_other_files();
        Ok(())
    }

    pub(super) fn close(&mut self, handle: usize) {
        self.handles.remove(&handle);
        self.claims.retain(|_, (by, _)| *by != handle);
        self.note_other_files();
    }

    pub(super) fn open_handles(&self) -> Vec<usize> {
        self.handles.keys().copied().collect()
    }

    pub(super) fn store(&self, handle: usize) -> Result<&SqliteStore, String> {
        let store = self.handles.get(&handle);
        store.ok_or_else(|| format!("handle {handle} is not open"))
    }

    /// A unique record of this length.
    pub(super) fn record(&mut self, length: usize) -> RecordBytes {
        self.serial += 1;
        let mut bytes = format!("{} ", self.serial).into_bytes();
        bytes.extend(random_bytes(self.serial, length));
        Arc::new(bytes)
    }

    fn begin_call(&mut self, handle: usize, what: StoreOperation) -> usize {
        let number = self.calls.len();
        self.calls.push(StoreCall { handle, what, answer: 0 });
        self.note(TraceEvent::Begun(number));
        number
    }

    fn acknowledge(&mut self, number: usize, answer: u64) {
        if let Some(call) = self.calls.get_mut(number) {
            call.answer = answer;
            self.model.apply(call);
        }
        self.note(TraceEvent::Acknowledged(number));
    }

    /// Submits an append. Its callback blocks the writer thread until `hold` is dropped.
    fn submit(
        &mut self,
        handle: usize,
        parts: Vec<AppendPart>,
        answer: &Sender<AppendAnswer>,
        hold: Option<Receiver<()>>,
    ) -> Result<(), String> {
        let mut appends: Vec<Append> = vec![];
        for part in &parts {
            let found = self.model.of(part.index);
            let records = part.records.iter().map(|record| record.to_vec()).collect();
            let at = version(found.records.len());
            let append = Append::new(aggregate(part.index)?, at, Epoch(found.epoch), records);
            appends.push(append.taking(part.taken.iter().copied().map(RequestId)));
        }
        let number = self.begin_call(handle, StoreOperation::Append(parts));
        if let Some(call) = self.calls.get(number) {
            self.model.apply(call);
        }
        let (recorder, answer) = (self.recorder.clone(), answer.clone());
        let done = move |result: Result<Vec<Version>, AppendError>| {
            if let (Ok(_), Some(recorder)) = (&result, &recorder) {
                recorder.note(TraceEvent::Acknowledged(number));
            }
            // The receiver is gone if the session has failed before.
            let _ = answer.send((number, result));
            if let Some(hold) = hold {
                let _ = hold.recv();
            }
        };
        self.store(handle)?.submit(appends, Box::new(done));
        Ok(())
    }

    pub(super) fn append(&mut self, handle: usize, parts: Vec<AppendPart>) -> Result<(), String> {
        let (answer, answers) = mpsc::channel();
        self.submit(handle, parts, &answer, None)?;
        drop(answer);
        check_all_answers(&answers)
    }

    /// The first append blocks the writer thread, so the rest share the next commit.
    pub(super) fn append_in_one_commit(
        &mut self,
        handle: usize,
        group: Vec<Vec<AppendPart>>,
    ) -> Result<(), String> {
        let (answer, answers) = mpsc::channel();
        let (release, hold) = mpsc::channel();
        let mut hold = Some(hold);
        for parts in group {
            let first = hold.is_some();
            self.submit(handle, parts, &answer, hold.take())?;
            if first {
                // From here on the writer thread is blocked.
                check_answer(answers.recv().map_err(|error| error_chain(&error))?)?;
            }
        }
        drop((release, answer));
        check_all_answers(&answers)
    }

    /// Appends through several handles at once; no two handles write to one aggregate.
    pub(super) fn append_concurrently(&mut self, crowd: Vec<(usize, Vec<AppendPart>)>) -> Result<(), String> {
        let (answer, answers) = mpsc::channel();
        for (handle, parts) in crowd {
            self.submit(handle, parts, &answer, None)?;
        }
        drop(answer);
        check_all_answers(&answers)
    }

    pub(super) fn request(&mut self, handle: usize, index: usize) -> Result<(), String> {
        let bytes = self.record(20);
        let words = bytes.to_vec();
        let number = self.begin_call(handle, StoreOperation::Request { index, bytes });
        let asked = self.store(handle)?.request(&aggregate(index)?, words);
        let RequestId(id) = asked.map_err(|error| error_chain(&error))?;
        if id <= self.model.request {
            let before = self.model.request;
            return Err(format!("request id {id} is not above {before}"));
        }
        self.acknowledge(number, id);
        Ok(())
    }

    /// Claims an aggregate, after its owner has given it up.
    pub(super) fn claim(&mut self, handle: usize, index: usize) -> Result<(), String> {
        self.unclaim(index, true)?;
        let number = self.begin_call(handle, StoreOperation::Claim { index });
        let claimed = self.store(handle)?.claim(&aggregate(index)?);
        let claim = claimed.map_err(|error| error_chain(&error))?;
        let Epoch(epoch) = claim.epoch;
        if epoch <= self.model.epoch {
            let before = self.model.epoch;
            return Err(format!("claim epoch {epoch} is not above {before}"));
        }
        if claim.version != version(self.model.of(index).records.len()) {
            let found = claim.version;
            return Err(format!("{} was claimed at {found}", claim.aggregate));
        }
        self.acknowledge(number, epoch);
        self.claims.insert(index, (handle, claim));
        Ok(())
    }

    /// Claims an aggregate and writes to it, which counts once the next commit is acknowledged or the handle is
    /// closed.
    pub(super) fn claim_writing_ahead(
        &mut self,
        handle: usize,
        index: usize,
        closes: bool,
    ) -> Result<(), String> {
        self.unclaim(index, true)?;
        let [first, second] = [self.record(40), self.record(20)];
        let at = version(self.model.of(index).records.len());
        let what = StoreOperation::ClaimWriting { index, records: vec![Arc::clone(&first)] };
        let ahead = self.begin_call(handle, what);
        let appends = move |claim: &Claim| {
            vec![Append::new(claim.aggregate.clone(), at, claim.epoch, vec![first.to_vec()])]
        };
        let store = self.store(handle)?;
        let claimed = store.claim_writing_ahead(&aggregate(index)?, Box::new(appends));
        let claim = claimed.map_err(|error| error_chain(&error))?.map_err(|error| error_chain(&error))?;
        let Epoch(epoch) = claim.epoch;
        if closes {
            self.close(handle);
            self.acknowledge(ahead, epoch);
            return Ok(());
        }
        let part = AppendPart { index, records: vec![Arc::clone(&second)], taken: vec![] };
        let next = self.begin_call(handle, StoreOperation::Append(vec![part]));
        let append = Append::new(aggregate(index)?, at.after(1), claim.epoch, vec![second.to_vec()]);
        self.store(handle)?.append(vec![append]).map_err(|error| error_chain(&error))?;
        self.acknowledge(ahead, epoch);
        self.acknowledge(next, 0);
        self.claims.insert(index, (handle, claim));
        Ok(())
    }

    /// Gives up a claim, if there is one.
    pub(super) fn unclaim(&mut self, index: usize, waiting: bool) -> Result<(), String> {
        let Some((handle, claim)) = self.claims.remove(&index) else {
            return Ok(());
        };
        let store = self.store(handle)?;
        if !waiting {
            store.unclaim_in_background(&claim);
            // An empty append returns only after the background change is written.
            let flushed = store.append(vec![]).map(drop);
            return flushed.map_err(|error| error_chain(&error));
        }
        store.unclaim(&claim).map_err(|error| error_chain(&error))
    }

    pub(super) fn remove(&mut self, handle: usize, index: usize) -> Result<(), String> {
        let epoch = Epoch(self.model.of(index).epoch);
        let number = self.begin_call(handle, StoreOperation::Remove { index });
        let removed = self.store(handle)?.remove(&aggregate(index)?, epoch);
        removed.map_err(|error| error_chain(&error))?;
        self.claims.remove(&index);
        self.acknowledge(number, 0);
        self.note_other_files();
        Ok(())
    }

    /// Saves a snapshot at an existing version.
    pub(super) fn save(&mut self, handle: usize, index: usize, at: usize) -> Result<(), String> {
        let bytes = snapshot(index, at, &self.model.of(index).records);
        let store = self.store(handle)?;
        let saved = store.save_snapshot(&aggregate(index)?, version(at), bytes);
        saved.map_err(|error| error_chain(&error))?;
        self.note_other_files();
        Ok(())
    }

    /// An append that is refused for its epoch or its version.
    pub(super) fn append_refused(
        &mut self,
        handle: usize,
        index: usize,
        wrong_epoch: bool,
    ) -> Result<(), String> {
        let found = self.model.of(index);
        let record = self.record(50).to_vec();
        let (epoch, at) = if wrong_epoch {
            (found.epoch.saturating_add(1), found.records.len())
        } else {
            (found.epoch, found.records.len().saturating_add(1))
        };
        let append = Append::new(aggregate(index)?, version(at), Epoch(epoch), vec![record]);
        self.begin_call(handle, StoreOperation::Refused);
        match self.store(handle)?.append(vec![append]) {
            Err(AppendError::Fenced { .. } | AppendError::Conflict { .. }) => Ok(()),
            other => Err(format!("an append that must be refused got {other:?}")),
        }
    }

    pub(super) fn compact(&mut self, handle: usize) -> Result<(), String> {
        let compacted = self.store(handle)?.compact();
        compacted.map(drop).map_err(|error| error_chain(&error))
    }

    pub(super) fn end(&mut self) {
        for handle in self.open_handles() {
            self.close(handle);
        }
    }
}

/// Waits for all answers.
fn check_all_answers(answers: &Receiver<AppendAnswer>) -> Result<(), String> {
    answers.iter().try_for_each(check_answer)
}

fn check_answer((number, result): AppendAnswer) -> Result<(), String> {
    let stored = result.map(drop);
    stored.map_err(|error| format!("append {number} failed: {}", error_chain(&error)))
}
