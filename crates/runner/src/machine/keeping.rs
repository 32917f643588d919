//! Whoever runs the programs of a job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{Cause, Class, Timestamp};

use super::ending::{Endings, Expected, OnRecord};
use crate::drive::Notifier;
use crate::executor::{AttemptFate, ExecutorMessage, failed};
use crate::folder::JobFolder;
use crate::keeper::{Keeper, Spec};
use crate::secrets::Secrets;

/// Runs programs, and outlives whoever asked for it. It reports with an [`ExecutorMessage`]: what has
/// ended, as a finished end, and also that it has gone, which is no failure of a request. See [`Keeper`]
/// for what each request means.
pub trait Keeping {
    /// Has a command run whose start is on record.
    fn run(&self, spec: Spec, expected: Expected);

    fn cancel(&self, start: u64);

    fn cancel_all(&self);

    /// Lets it forget an attempt whose end is on record.
    fn forget(&self, start: u64);

    /// Says that all fates of the recovery are on record.
    fn trust(&self);
}

/// What is needed to reach the keeper of a job.
pub struct Reach<'a> {
    pub folder: &'a JobFolder,
    /// The last place of outputs that is on record, if the spool is gone.
    pub behind: Option<u32>,
    /// The attempts of programs that are on record as started and may have begun.
    pub started: BTreeMap<u64, OnRecord>,
    pub secrets: Secrets,
    pub now: Timestamp,
    /// How long the processes of a command have between TERM and KILL.
    pub grace: Duration,
    /// Who hears what the keeper reports.
    pub notifier: Notifier,
}

pub struct ReachedKeeper {
    pub keeper: Box<dyn Keeping>,
    /// What became of every attempt that was on record as started.
    pub fates: BTreeMap<u64, AttemptFate>,
    /// Other attempts it knows of.
    pub others: BTreeSet<u64>,
}

/// The keeper of a job on this machine.
pub(super) struct LocalKeeper {
    pub(super) keeper: Keeper,
    pub(super) endings: Arc<Endings>,
    pub(super) notifier: Notifier,
}

impl Keeping for LocalKeeper {
    fn run(&self, spec: Spec, expected: Expected) {
        let start = spec.id;
        self.endings.expect(start, expected);
        if let Err(error) = self.keeper.run(spec) {
            let end = failed(start, Cause::Other(Class::Permanent), error.to_string());
            self.notifier.send(ExecutorMessage::Ended(Box::new(end)));
        }
    }

    fn cancel(&self, start: u64) {
        self.keeper.cancel(start);
    }

    fn cancel_all(&self) {
        self.keeper.cancel_all();
    }

    fn forget(&self, start: u64) {
        self.endings.forget(start);
        self.keeper.forget(start);
    }

    fn trust(&self) {
        self.keeper.trust();
    }
}
