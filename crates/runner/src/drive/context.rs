//! What all parts of a running job share.

use std::collections::BTreeSet;

use undaunted_engine::id::StartId;
use undaunted_engine::job::Job;
use undaunted_policy::{FailureCause, FailureClass, Timestamp};

use super::message::Notifier;
use super::running::Services;
use crate::clock::Clock;
use crate::executor::{ExecutorMessage, failed};
use crate::folder::JobFolder;
use crate::secrets::Secrets;

pub(crate) struct JobContext<'w> {
    pub(crate) services: &'w Services,
    pub(crate) folder: JobFolder,
    pub(crate) secrets: Secrets,
    /// Where results of accepted attempts are to be sent.
    pub(crate) webhooks: String,
    pub(crate) notifier: Notifier,
    pub(crate) shutdown: Shutdown,
    clock: Clock,
}

/// How often the loop was interrupted, and which attempts it did not begin for that reason.
#[derive(Default)]
pub(crate) struct Shutdown {
    asked: u32,
    unbegun: BTreeSet<StartId>,
}

impl<'w> JobContext<'w> {
    pub(super) fn new(
        services: &'w Services,
        folder: JobFolder,
        secrets: Secrets,
        webhooks: String,
        notifier: Notifier,
    ) -> Self {
        Self {
            clock: Clock::set_by(&*services.machine),
            services,
            folder,
            secrets,
            webhooks,
            notifier,
            shutdown: Shutdown::default(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.at(self.services.machine.uptime())
    }

    /// Reports a failed attempt by a message, since the job may be in the middle of a change.
    pub(crate) fn fail(&self, start: StartId, cause: FailureCause, error: impl Into<String>) {
        self.notifier.send(ExecutorMessage::Ended(Box::new(failed(start, cause, error))));
    }

    /// Reports that an executor got work of another kind.
    pub(crate) fn cannot_begin(&self, start: StartId) {
        let why = "this release cannot run the command";
        self.fail(start, FailureCause::Other(FailureClass::Permanent), why);
    }
}

impl Shutdown {
    pub(super) const fn interrupt(&mut self) -> u32 {
        self.asked = self.asked.saturating_add(1);
        self.asked
    }

    /// Nothing new may begin.
    pub(super) const fn is_requested(&self) -> bool {
        self.asked > 0
    }

    /// Running attempts are ended, too.
    pub(crate) const fn is_immediate(&self) -> bool {
        self.asked > 1
    }

    /// An attempt did not begin because the loop leaves; the process that resumes the job begins it.
    pub(super) fn leave_unbegun(&mut self, start: StartId) {
        self.unbegun.insert(start);
    }

    /// Whether only attempts that did not begin are left.
    pub(super) fn is_done(&self, job: &Job) -> bool {
        let mut running = job.starts.running.keys();
        self.is_immediate() && !self.unbegun.is_empty() && running.all(|start| self.unbegun.contains(start))
    }
}
