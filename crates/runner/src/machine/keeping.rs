//! The keeper of a job, as the event loop uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::id::StartId;
use undaunted_policy::{Cause, Class, Timestamp};

use super::ending::{Endings, Expected, OnRecord};
use crate::drive::Notifier;
use crate::executor::{AttemptFate, ExecutorMessage, failed};
use crate::folder::JobFolder;
use crate::keeper::{Keeper, Spec};
use crate::secrets::Secrets;

/// Runs programs, and outlives the engine. Reports with an [`ExecutorMessage`]: ends, completed, and also
/// that the keeper has gone, so no request returns an error. See [`Keeper`] for what each request means.
pub trait Keeping {
    /// Runs a command whose start is on record.
    fn run(&self, spec: Spec, expected: Expected);

    fn cancel(&self, start: StartId);

    fn cancel_all(&self);

    /// Drops an attempt whose end is on record.
    fn forget(&self, start: StartId);

    /// All fates of the recovery are on record.
    fn trust(&self);
}

pub struct Reach<'a> {
    pub folder: &'a JobFolder,
    /// The last output position on record, if the spool is gone.
    pub behind: Option<u32>,
    /// The attempts of programs on record as started that may have begun.
    pub started: BTreeMap<StartId, OnRecord>,
    pub secrets: Secrets,
    pub now: Timestamp,
    /// Between TERM and KILL.
    pub grace: Duration,
    pub notifier: Notifier,
}

pub struct ReachedKeeper {
    pub keeper: Box<dyn Keeping>,
    /// Of every attempt on record as started.
    pub fates: BTreeMap<StartId, AttemptFate>,
    /// Other attempts the keeper knows of.
    pub others: BTreeSet<StartId>,
}

pub(super) struct LocalKeeper {
    pub(super) keeper: Keeper,
    pub(super) endings: Arc<Endings>,
    pub(super) notifier: Notifier,
}

impl Keeping for LocalKeeper {
    fn run(&self, spec: Spec, expected: Expected) {
        let start = StartId(spec.id);
        self.endings.expect(start, expected);
        if let Err(error) = self.keeper.run(spec) {
            let end = failed(start, Cause::Other(Class::Permanent), error.to_string());
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
