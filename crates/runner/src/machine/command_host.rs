//! The keeper of a job, as the event loop uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::id::StartId;
use undaunted_policy::{FailureCause, FailureClass, Timestamp};

use super::ending::{AttemptEnds, ExpectedEnd, RecordedAttempt};
use crate::drive::Notifier;
use crate::executor::{AttemptFate, ExecutorMessage, failed};
use crate::folder::JobFolder;
use crate::keeper::{CommandSpec, KeeperClient};
use crate::secrets::Secrets;

/// Runs programs, and outlives the engine. It reports ends, and also the loss of the keeper, with an
/// [`ExecutorMessage`], so no request returns an error. The requests are those of [`KeeperClient`].
pub trait CommandHost {
    /// Runs a command whose start is on record.
    fn run(&self, spec: CommandSpec, expected: ExpectedEnd);

    fn cancel(&self, start: StartId);

    fn cancel_all(&self);

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
    pub secrets: Secrets,
    pub now: Timestamp,
    /// Between TERM and KILL.
    pub grace: Duration,
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

impl CommandHost for LocalKeeper {
    fn run(&self, spec: CommandSpec, expected: ExpectedEnd) {
        let start = StartId(spec.id);
        self.endings.expect(start, expected);
        if let Err(error) = self.keeper.run(spec) {
            let end = failed(start, FailureCause::Other(FailureClass::Permanent), error.to_string());
            self.notifier.send(ExecutorMessage::Ended(Box::new(end)));
        }
    }

    fn cancel(&self, start: StartId) {
        self.keeper.cancel(start.0);
    }

    fn cancel_all(&self) {
        self.keeper.cancel_all();
    }

    fn forget(&self, start: StartId) {
        self.endings.forget(start);
        self.keeper.forget(start.0);
    }

    fn trust(&self) {
        self.keeper.trust();
    }
}
