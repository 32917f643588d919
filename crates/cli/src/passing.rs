//! Prints the output of the commands of a job: as it is written, or item by item.
//!
//! Output is in files while a command runs and in the spool afterwards, so a slow or closed reader delays
//! only the printing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use undaunted_engine::breaker::{AdmissionControl, BreakerChange};
use undaunted_engine::event::{Event, ItemEvent, OutputPassing, Record, SpooledPart};
use undaunted_engine::id::{ItemId, StartId, StepId};
use undaunted_engine::item_bytes::item_bytes;
use undaunted_engine::job::{ItemState, Job};
use undaunted_engine::view::SettledItemView;
use undaunted_policy::FailureCause;
use undaunted_runner::drive::{LoopHandle, Observer, StoreOutage};
use undaunted_runner::folder::JobFolder;
use undaunted_runner::reader::JobReader;
use undaunted_runner::spool::{Spool, SpooledOutput};
use undaunted_store::Version;

use crate::screen::json;
use crate::{CommandError, Display, Jobs, OpenedJob, Result};

/// How often the output files of a running command are polled.
const POLL: Duration = Duration::from_millis(10);
const CHUNK: usize = 64 << 10;

/// Prints output on the streams it was written to, and everything else as lines on standard error.
pub(crate) struct OutputPrinter {
    display: Display,
    spool: PathBuf,
    how: OutputPassing,
    /// Standard output is for JSON: one object for each settled item, with its output.
    json: bool,
    /// The start of the only command and its output files, until `tick` checks whether it still runs.
    begun: Option<(StartId, [PathBuf; 2])>,
    tail: Option<Tail>,
    /// The output of the last attempt of items that are not yet settled or printed.
    kept: BTreeMap<ItemId, [Option<SpooledPart>; 2]>,
    /// Settled items whose predecessors are not printed yet.
    settled: BTreeSet<ItemId>,
    next: ItemId,
    /// A file that holds the number of the last record whose output was printed.
    printed: Option<File>,
    write_error: Option<io::Error>,
    pub(crate) cause: Option<FailureCause>,
    /// Whether the reader of standard output has gone.
    pub(crate) unread: Arc<AtomicBool>,
    handle: Option<(String, LoopHandle)>,
}

impl OutputPrinter {
    pub(crate) fn new(job: &Job, folder: &JobFolder, how: OutputPassing, display: Display) -> Self {
        let mut steps = StepId::all().zip(&job.steps);
        let map = steps.find(|(step, _)| job.plan().is_map(*step));
        let step = map.map_or_else(StepId::default, |(step, _)| step);
        let printed = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.path().join("printed"));
        Self {
            display,
            spool: folder.spool(),
            how,
            json: false,
            begun: None,
            tail: None,
            kept: BTreeMap::new(),
            settled: BTreeSet::new(),
            next: step.item(0),
            // Without the file, a later run does not print what a killed one left unprinted.
            printed: printed.ok(),
            write_error: None,
            cause: None,
            unread: Arc::new(AtomicBool::new(false)),
            handle: None,
        }
    }

    pub(crate) const fn with_json(mut self, json: bool) -> Self {
        self.json = json;
        self
    }

    /// Prints output that an earlier run recorded but did not print, and loads the items it did not settle.
    pub(crate) fn catch_up(&mut self, jobs: &Jobs, id: &str) -> Result<()> {
        let mut opened = OpenedJob::open(jobs, id)?;
        let reader = &mut opened.reader;
        if self.how == OutputPassing::Through {
            let active = reader.job.active(self.next);
            self.cause = active.and_then(|active| active.cause);
            return Ok(());
        }
        let done = self.printed_until();
        if self.is_in_order() {
            // The earlier run printed the items before the first unsettled one; later items wait for it.
            self.settled = settled_by(reader, done)?;
            while self.settled.remove(&self.next) {
                self.next.index = self.next.index.saturating_add(1);
            }
        }
        let steps = StepId::all().zip(&reader.job.steps);
        let active = steps.flat_map(|(step, state)| {
            let active = state.items.iter().filter(|(_, item)| matches!(item, ItemState::Active(_)));
            active.map(move |(index, _)| step.item(index))
        });
        let mut items: BTreeSet<ItemId> = active.collect();
        items.extend(&self.settled);
        reader.each_record(done, |_, record| {
            if let Event::Item(event) = &record.event {
                items.insert(event.item());
            }
        })?;
        for (item, history) in reader.histories(items)? {
            let mut attempts = history.attempts.iter().rev();
            let last = attempts.find_map(|attempt| attempt.outcome.as_ref());
            if let Some(last) = last {
                self.kept.insert(item, [last.stdout, last.stderr]);
            }
        }
        reader.each_record(done, |job, record| {
            self.learn(job, record);
        })?;
        Ok(())
    }

    /// The version of the last record whose output was printed.
    fn printed_until(&self) -> Version {
        let mut number = [0; 8];
        let is_noted = self.printed.as_ref().is_some_and(|file| file.read_exact_at(&mut number, 0).is_ok());
        if is_noted { Version(u64::from_le_bytes(number)) } else { Version::EMPTY }
    }

    const fn is_in_order(&self) -> bool {
        matches!(self.how, OutputPassing::InOrder | OutputPassing::TaggedInOrder)
    }

    /// Reports the first error of printing.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self.write_error.take() {
            None => Ok(()),
            Some(error) => Err(CommandError::Store {
                message: format!("cannot write the output: {error}"),
                help: Some("`undaunted logs` prints all of it".to_owned()),
            }),
        }
    }

    fn write(&mut self, stream: usize, bytes: &[u8]) {
        if let Err(error) = print(self.stream(stream), bytes)
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.write_error.get_or_insert(error);
        }
    }

    /// Where the output of this stream of a command goes.
    const fn stream(&self, stream: usize) -> usize {
        if self.json { 1 } else { stream }
    }

    fn finish_tail(&mut self, kept: [Option<SpooledPart>; 2]) {
        let done = self.tail.take().map_or([0, 0], Tail::end);
        for (stream, (kept, done)) in kept.into_iter().zip(done).enumerate() {
            if let Some(kept) = kept {
                let bytes = self.read(&kept);
                let done = usize::try_from(done).unwrap_or(usize::MAX);
                self.write(stream, bytes.get(done..).unwrap_or_default());
            }
        }
    }

    fn read(&self, kept: &SpooledPart) -> Vec<u8> {
        let read = Spool::open(&self.spool)
            .map_err(io::Error::other)
            .and_then(|spool| spool.output(&spooled(*kept)));
        match read {
            Ok(output) => [output.head, output.tail].concat(),
            Err(error) => {
                drop(print(1, format!("undaunted: cannot read output: {error}\n").as_bytes()));
                Vec::new()
            }
        }
    }

    fn settle(&mut self, job: &Job, item: ItemId) {
        if !job.plan().is_map(item.step) {
            return;
        }
        // A redriven dead letter before `next` is printed at once: an earlier run printed its neighbours.
        if !self.is_in_order() || item < self.next {
            return self.print(job, item);
        }
        self.settled.insert(item);
        self.print_in_order(job);
    }

    /// Prints settled items up to the first that is not settled.
    fn print_in_order(&mut self, job: &Job) {
        while self.settled.remove(&self.next) {
            let next = self.next;
            self.print(job, next);
            self.next.index = next.index.saturating_add(1);
        }
    }

    fn print(&mut self, job: &Job, item: ItemId) {
        let tagged = matches!(self.how, OutputPassing::Tagged | OutputPassing::TaggedInOrder);
        let kept = self.kept.remove(&item).unwrap_or_default();
        if self.json {
            let output = kept.map(|kept| kept.map_or_else(Vec::new, |kept| self.read(&kept)));
            return self.print_json(&SettledItemView::of(job, item, output));
        }
        for (stream, kept) in kept.into_iter().enumerate() {
            let Some(kept) = kept else {
                continue;
            };
            let bytes = self.read(&kept);
            if tagged {
                self.write(stream, &tagged_lines(&tag(job, item), &bytes));
            } else {
                self.write(stream, &bytes);
            }
        }
    }

    fn print_json(&mut self, view: &SettledItemView) {
        let mut line = Vec::new();
        if let Err(error) = json(&mut line, view).and_then(|()| print(0, &line))
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.write_error.get_or_insert(error);
        }
    }

    fn ended(&mut self, item: ItemId, kept: [Option<SpooledPart>; 2]) {
        if self.how == OutputPassing::Through {
            self.finish_tail(kept);
        } else {
            self.kept.insert(item, kept);
        }
    }

    /// Returns whether output may have been printed.
    fn learn(&mut self, job: &Job, record: &Record) -> bool {
        match &record.event {
            Event::Item(ItemEvent::AttemptSucceeded(done)) => {
                self.ended(done.of.item(), [done.stdout, done.stderr]);
            }
            Event::Item(ItemEvent::AttemptFailed(failed)) => {
                self.cause = Some(failed.cause);
                self.ended(failed.of.item(), [failed.stdout, failed.stderr]);
            }
            Event::Item(
                event @ (ItemEvent::Succeeded { .. }
                | ItemEvent::Skipped { .. }
                | ItemEvent::DeadLettered { .. }),
            ) => self.settle(job, event.item()),
            Event::Item(
                ItemEvent::AttemptStarted(_)
                | ItemEvent::AttemptAccepted { .. }
                | ItemEvent::ResultArrived(_)
                | ItemEvent::RetryScheduled(_)
                | ItemEvent::CommandStopped(_)
                | ItemEvent::CommandRepeated { .. }
                | ItemEvent::CommandRecovered { .. }
                | ItemEvent::Redriven { .. }
                | ItemEvent::Dropped { .. }
                | ItemEvent::Held(_)
                | ItemEvent::Released(_)
                | ItemEvent::LateResult(_)
                | ItemEvent::StartReserved(_)
                | ItemEvent::ReservationWithdrawn(_),
            )
            | Event::Job(_)
            | Event::Step(_)
            | Event::Breaker(_) => return false,
        }
        true
    }
}

impl Observer for OutputPrinter {
    fn recorded(&mut self, job: &Job, seq: u64, record: &Record) {
        self.display.recorded(job, seq, record);
        if self.learn(job, record)
            && let Some(printed) = &self.printed
        {
            // Not synced: it has to survive a kill of this process, but no power cut.
            drop(printed.write_all_at(&seq.to_le_bytes(), 0));
        }
    }

    fn begins(&mut self, job: &Job, handle: LoopHandle) {
        self.handle = Some((job.id().to_owned(), handle));
    }

    fn began(&mut self, start: StartId, files: [PathBuf; 2]) {
        if self.how == OutputPassing::Through {
            self.begun = Some((start, files));
        }
    }

    /// A short command has often ended before the first tick, and then needs no tail.
    fn tick(&mut self, job: &Job, _: &AdmissionControl) {
        if let Some((start, files)) = self.begun.take()
            && job.starts.running.contains_key(&start)
        {
            let (unread, handle) = (Arc::clone(&self.unread), self.handle.clone());
            let to = [self.stream(0), self.stream(1)];
            self.tail = Some(Tail::begin(files, to, unread, handle));
        }
    }

    fn leaving(&mut self, asked: u32, running: usize) {
        self.display.leaving(asked, running);
    }

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        self.display.outage(outage);
    }

    fn breaker_changed(&mut self, job: &Job, breaker: &str, change: &BreakerChange) {
        self.display.breaker_changed(job, breaker, change);
    }
}

/// The items of maps that were settled at this version.
fn settled_by(reader: &JobReader<'_>, version: Version) -> Result<BTreeSet<ItemId>> {
    let job = &reader.job;
    let maps = StepId::all().zip(&job.steps).filter(|(step, _)| job.plan().is_map(*step));
    let settled = maps.flat_map(|(step, state)| {
        let settled = state.items.iter().filter(|(_, item)| matches!(item, ItemState::Settled(_)));
        settled.map(move |(index, _)| step.item(index))
    });
    let mut settled: BTreeSet<ItemId> = settled.collect();
    // The first change of an item after the version shows whether it was settled before.
    let mut known = BTreeSet::new();
    reader.each_record(version, |_, record| {
        let Event::Item(event) = &record.event else {
            return;
        };
        let item = event.item();
        let was_settled = match event {
            ItemEvent::Succeeded { .. } | ItemEvent::Skipped { .. } | ItemEvent::DeadLettered { .. } => false,
            ItemEvent::Redriven { .. } | ItemEvent::Dropped { .. } => true,
            ItemEvent::AttemptStarted(_)
            | ItemEvent::AttemptSucceeded(_)
            | ItemEvent::AttemptFailed(_)
            | ItemEvent::AttemptAccepted { .. }
            | ItemEvent::ResultArrived(_)
            | ItemEvent::RetryScheduled(_)
            | ItemEvent::CommandStopped(_)
            | ItemEvent::CommandRepeated { .. }
            | ItemEvent::CommandRecovered { .. }
            | ItemEvent::Held(_)
            | ItemEvent::Released(_)
            | ItemEvent::LateResult(_)
            | ItemEvent::StartReserved(_)
            | ItemEvent::ReservationWithdrawn(_) => return,
        };
        if known.insert(item) {
            if was_settled {
                settled.insert(item)
            } else {
                settled.remove(&item)
            };
        }
    })?;
    Ok(settled)
}

/// The input of an item on one line.
fn tag(job: &Job, item: ItemId) -> Vec<u8> {
    let input: serde_json::Value = serde_json::from_str(job.value(item)).unwrap_or_default();
    let text = input.as_str().map(|text| text.as_bytes().to_vec());
    let mut tag = text.or_else(|| item_bytes(&input)).unwrap_or_else(|| job.identity(item).into());
    for byte in tag.iter_mut().filter(|byte| b"\n\t\r".contains(byte)) {
        *byte = b' ';
    }
    tag
}

fn tagged_lines(name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(name);
        text.push(b'\t');
        text.extend_from_slice(line);
    }
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(b'\n');
    }
    text
}

pub(crate) fn spooled(kept: SpooledPart) -> SpooledOutput {
    SpooledOutput {
        length: kept.length,
        head: kept.head,
        tail: kept.tail,
        segment: kept.segment,
        offset: kept.offset,
    }
}

/// Writes to standard output (0) or standard error.
fn print(stream: usize, bytes: &[u8]) -> io::Result<()> {
    if stream == 0 {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    } else {
        io::stderr().lock().write_all(bytes)
    }
}

struct Tail {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<[u64; 2]>,
}

impl Tail {
    /// If the reader of standard output has gone, the command is cancelled. Writing to a pipe would have
    /// killed it; writing to a file never does.
    fn begin(
        files: [PathBuf; 2],
        to: [usize; 2],
        unread: Arc<AtomicBool>,
        handle: Option<(String, LoopHandle)>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut done = [0_u64; 2];
            let opened = files.map(|path| File::open(path).ok());
            while !stopped.load(Ordering::Acquire) {
                for (stream, (file, done)) in to.into_iter().zip(opened.iter().zip(&mut done)) {
                    if let Some(file) = file {
                        let (copied, is_read) = copy(stream, file, *done);
                        *done = done.saturating_add(copied);
                        if !is_read
                            && stream == 0
                            && !unread.swap(true, Ordering::AcqRel)
                            && let Some((job, handle)) = &handle
                        {
                            handle.cancel(job);
                        }
                    }
                }
                std::thread::park_timeout(POLL);
            }
            done
        });
        Self { stop, thread }
    }

    /// Stops the thread and returns the number of bytes printed of each stream.
    fn end(self) -> [u64; 2] {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

/// Prints the new part of a file. Returns its length, and whether the reader still exists.
fn copy(stream: usize, file: &File, from: u64) -> (u64, bool) {
    let mut copied = 0_u64;
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read_at(&mut buffer, from.saturating_add(copied)) {
            Ok(0) | Err(_) => return (copied, true),
            Ok(read) => {
                if print(stream, buffer.get(..read).unwrap_or_default()).is_err() {
                    return (copied, false);
                }
                copied = copied.saturating_add(u64::try_from(read).unwrap_or_default());
            }
        }
    }
}
