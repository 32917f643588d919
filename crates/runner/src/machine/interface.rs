//! The machine an event loop runs on.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::id::StartId;
use undaunted_policy::{FailureCause, FailureClass, Timestamp};

use super::{AttemptEnds, ExpectedEnd, RecordedAttempt};
use crate::executor::failed;
use crate::{
    AttemptFate, CommandSpec, ExecutorMessage, FunctionOrder, HttpOrder, JobFolder, KeeperClient,
    KeeperError, NewFile, Notifier,
};

pub type CancelCall = Box<dyn FnOnce() + Send>;

pub trait Machine: Send + Sync {
    /// The time since boot, including sleep. Unlike the wall clock, it cannot be set.
    fn uptime(&self) -> Duration;

    /// The wall clock, and the uptime at that instant.
    fn clocks(&self) -> (Timestamp, Duration);

    /// The fewest records between two snapshots of a job. Reading fewer takes negligible time.
    fn save_after(&self) -> u64 {
        16_384
    }

    /// The length at which the journal of a breaker is folded into one record.
    fn trim_after(&self) -> u64 {
        1024
    }

    /// Writes a snapshot, outside the loop.
    fn save(&self, work: Box<dyn FnOnce() + Send>) {
        self.run_in_background(work);
    }

    fn run_in_background(&self, work: Box<dyn FnOnce() + Send>);

    /// Sends an HTTP request, and reports that the service has accepted it, or how it ended.
    fn send(&self, order: HttpOrder, notifier: Notifier) -> CancelCall;

    fn has_function(&self, _name: &str) -> bool {
        false
    }

    fn call(&self, _order: FunctionOrder, _notifier: Notifier) -> CancelCall {
        Box::new(|| {})
    }

    /// Connects to the keeper of a job, or starts one, and returns the fates of the attempts on record. If
    /// the keeper cannot tell which attempts never began, their remaining processes are ended first, so that
    /// no second attempt runs beside one of them.
    fn keeper(&self, reach: KeeperAddress<'_>) -> Result<ReachedKeeper, KeeperError>;

    fn has_spool(&self, folder: &JobFolder) -> bool;

    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    fn write(&self, file: &NewFile<'_>) -> io::Result<()>;

    /// Writes a private file of a job, atomically.
    fn write_private(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Notes that a process runs the job, so that a resumed job can report how long it was interrupted. This
    /// does not decide who owns the job, and may be lost.
    fn note_alive(&self, folder: &JobFolder);

    /// When `note_alive` was last called.
    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp>;
}

/// Runs programs, and outlives the engine. It reports ends, and also the loss of the keeper, with an
/// [`ExecutorMessage`], so no request returns an error. The requests are those of [`KeeperClient`].
pub trait CommandHost {
    /// Runs a command whose start is on record.
    fn run(&self, spec: CommandSpec, expected: ExpectedEnd);

    /// Runs a command whose reservation is on record, as soon as fewer than `slots` commands run.
    fn reserve(&self, spec: CommandSpec, expected: ExpectedEnd, slots: u32);

    /// Drops the reserved commands that have not begun, and reports each as not begun.
    fn withdraw(&self);

    /// Nothing follows for now: sends what was reserved.
    fn flush(&self);

    fn cancel(&self, start: StartId);

    /// Ends all commands, beginning with this signal.
    fn cancel_all(&self, signal: i32);

    /// Drops an attempt whose end is on record.
    fn forget(&self, start: StartId);

    /// All fates of the recovery are on record.
    fn trust(&self);
}

pub struct KeeperAddress<'a> {
    pub folder: &'a JobFolder,
    /// The last output segment on record, if the spool is gone.
    pub behind: Option<u32>,
    /// The attempts of programs on record as started that may have begun.
    pub started: BTreeMap<StartId, RecordedAttempt>,
    pub now: Timestamp,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// What all commands have in their environments.
    pub env: &'a [(OsString, OsString)],
    pub notifier: Notifier,
}

pub struct ReachedKeeper {
    pub keeper: Box<dyn CommandHost>,
    /// The fate of every attempt on record as started.
    pub fates: BTreeMap<StartId, AttemptFate>,
    /// Other attempts the keeper knows of.
    pub others: BTreeSet<StartId>,
}

pub(super) struct LocalKeeper {
    pub(super) keeper: KeeperClient,
    pub(super) endings: Arc<AttemptEnds>,
    pub(super) notifier: Notifier,
}

impl LocalKeeper {
    fn refused(&self, start: StartId, error: &KeeperError) {
        let end = failed(start, FailureCause::Other(FailureClass::Permanent), error.to_string());
        self.notifier.send(ExecutorMessage::Ended(Box::new(end)));
    }
}

impl CommandHost for LocalKeeper {
    fn run(&self, spec: CommandSpec, expected: ExpectedEnd) {
        let start = StartId(spec.id);
        self.endings.expect(start, expected);
        if let Err(error) = self.keeper.run(spec) {
            self.refused(start, &error);
        }
    }

    fn reserve(&self, spec: CommandSpec, expected: ExpectedEnd, slots: u32) {
        let start = StartId(spec.id);
        self.endings.expect(start, expected);
        if let Err(error) = self.keeper.reserve(spec, slots) {
            self.refused(start, &error);
        }
    }

    fn withdraw(&self) {
        self.keeper.withdraw();
    }

    fn flush(&self) {
        self.keeper.flush();
    }

    fn cancel(&self, start: StartId) {
        self.keeper.cancel(start.0);
    }

    fn cancel_all(&self, signal: i32) {
        self.keeper.cancel_all(signal);
    }

    fn forget(&self, start: StartId) {
        self.endings.forget(start);
        self.keeper.forget(start.0);
    }

    fn trust(&self) {
        self.keeper.trust();
    }
}
