//! One running job: its state, its journal, and its turn in the event loop.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::effect;
use undaunted_engine::event::Record;
use undaunted_engine::id::StartId;
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, JobStage, StepStage};
use undaunted_engine::mutant::{self, Mutant};
use undaunted_engine::workflow::Action;
use undaunted_policy::{FailureCause, FailureClass, Timestamp};
use undaunted_store::{Store, StoreRequest};

use super::job_journal::{JobJournal, SnapshotSchedule};
use super::reservations::Withdrawal;
use super::starter::{StartRate, Starter};
use super::{BreakerCache, DriveError, Notifier, Observer, action_of};
use crate::executor::{Executors, failed};
use crate::{
    CatalogHandle, ClaimedJob, Clock, Endpoints, ExecutorMessage, JobFolder, LocalFolder, Machine, Secrets,
    failpoint,
};

pub struct Services {
    pub store: Arc<dyn Store>,
    /// For spools, item files and results of this process.
    pub local: LocalFolder,
    pub machine: Arc<dyn Machine>,
    /// Between TERM and KILL, for the processes of a command.
    pub grace: Duration,
    /// The longest time between two checks of what follows from time alone.
    pub check_interval: Duration,
    /// If jobs are recorded in the catalog of the store.
    pub catalog: Option<CatalogHandle>,
    pub endpoints: Endpoints,
    /// The environment of this process, for its commands.
    pub env: Vec<(OsString, OsString)>,
}

pub(super) struct JobDriver<'w> {
    pub(super) job: Job,
    pub(super) context: JobContext<'w>,
    pub(super) journal: JobJournal,
    pub(super) executors: Executors,
    pub(super) starter: Starter,
    pub(super) withdrawal: Withdrawal,
    pub(super) breakers: Rc<RefCell<BreakerCache<'w>>>,
    pub(super) observer: Box<dyn Observer + 'w>,
    pub(super) origin: LoadOrigin,
}

pub(super) struct LoadOrigin {
    /// Submitted by this process just now.
    pub(super) is_new: bool,
    /// Recorded with its submission.
    with_it: Vec<Record>,
    /// An input it gets before it runs.
    first: Option<Input>,
    /// Its new settings have yet to be passed to its breakers.
    configures: bool,
}

/// What is read before anything is decided.
#[derive(Default)]
pub(super) struct LoadedJob {
    requests: Vec<StoreRequest>,
    last_segment: Option<u32>,
}

impl<'w> JobDriver<'w> {
    pub(super) fn new(
        claimed: ClaimedJob,
        services: &'w Services,
        secrets: Secrets,
        observer: Box<dyn Observer + 'w>,
        notifier: Notifier,
        breakers: Rc<RefCell<BreakerCache<'w>>>,
        webhooks: String,
    ) -> Self {
        let saving = SnapshotSchedule {
            at: claimed.saved.0,
            bytes: claimed.saved.1,
            last: Vec::new(),
            under_way: Arc::default(),
        };
        let clock = Clock::set_by(&*services.machine);
        let uptime = services.machine.uptime();
        let rate = StartRate::new(claimed.job.starts.pace, clock.at(uptime), uptime);
        Self {
            context: JobContext {
                clock,
                services,
                folder: services.local.job(claimed.job.id()),
                secrets,
                webhooks,
                notifier,
                shutdown: Shutdown::default(),
            },
            job: claimed.job,
            journal: JobJournal::new(claimed.claim, claimed.version, saving),
            executors: Executors::default(),
            starter: Starter::new(rate),
            withdrawal: Withdrawal::default(),
            breakers,
            observer,
            origin: LoadOrigin {
                is_new: claimed.is_new,
                with_it: claimed.with_it,
                first: claimed.first,
                configures: false,
            },
        }
    }

    /// Handles the consequences of messages, and of time if `woke`.
    pub(super) fn turn(&mut self, woke: bool) -> Result<(), DriveError> {
        self.handle_deferred()?;
        if woke {
            self.decide(&Input::Woke);
        }
        self.wake();
        self.observer.tick(&self.job, &self.breakers.borrow().admission);
        self.complete()?;
        self.withdraw_if_needed();
        self.fill()?;
        self.submit_pending();
        self.executors.programs.flush();
        self.snapshot_if_idle();
        Ok(())
    }

    pub(super) fn leave(self) -> Job {
        // Disconnects from the keeper before another engine can connect.
        drop(self.executors);
        self.context.services.store.unclaim_in_background(&self.journal.claim);
        self.job
    }

    /// Does what an outage or a lost keeper has delayed.
    pub(super) fn complete(&mut self) -> Result<(), DriveError> {
        // With its spool in place, this needs no store.
        if self.executors.programs.is_disconnected {
            let last = self.last_segment()?;
            self.reconnect(last)?;
        }
        if self.breakers.borrow().is_cut_off {
            return Ok(());
        }
        self.configure()?;
        if !self.starter.awaiting_results.is_empty() {
            self.read_outputs();
        }
        Ok(())
    }

    /// Passes new settings of the job to its breakers.
    fn configure(&mut self) -> Result<(), DriveError> {
        if self.origin.configures {
            self.configure_breakers()?;
            self.origin.configures = false;
        }
        Ok(())
    }

    /// Reads what the job needs before anything is decided. Called again after an outage.
    pub(super) fn load(&mut self) -> Result<LoadedJob, DriveError> {
        failpoint::reach("claimed", 1);
        for command in self.job.plan().commands() {
            self.executors.of(Some(&command.action)).check(&command.action, &self.context)?;
        }
        self.load_breakers()?;
        if self.origin.is_new {
            return Ok(LoadedJob::default());
        }
        let store = &self.context.services.store;
        let requests = store.requests(&self.journal.claim.aggregate)?;
        let has_programs = self.job.plan().has_programs();
        let last_segment = has_programs.then(|| self.last_segment()).transpose()?.flatten();
        Ok(LoadedJob { requests, last_segment })
    }

    pub(super) fn begin(&mut self, loaded: LoadedJob) -> Result<(), DriveError> {
        for (seq, record) in (2..).zip(&self.origin.with_it) {
            self.observer.recorded(&self.job, seq, record);
        }
        let first = self.origin.first.take();
        if self.job.stage.has_ended() {
            // A job that has ended can only be asked to redrive its dead letters.
            if let Some(first) = &first {
                self.decide(first);
            }
        } else if !self.origin.is_new {
            self.executors.programs.known_to_keeper = self.started_programs();
            let machine = &self.context.services.machine;
            let seen = machine.seen_alive(&self.context.folder);
            self.decide(&Input::Resume { last_seen: seen });
            let updates = matches!(first, Some(Input::Update { .. }));
            if !self.job.starts.reserved.is_empty() && !updates {
                // What stops the job comes after its reserved starts. An update decides about all that comes.
                self.reconnect(loaded.last_segment)?;
            }
            if let Some(first) = &first {
                self.decide(first);
            }
            self.origin.configures = matches!(first, Some(Input::Update { .. }));
            // In the same append as the new policy, unless there is an outage.
            match self.configure() {
                Err(error) if error.outage().is_some() => {}
                configured => configured?,
            }
        }
        if self.job.stage.has_ended() {
            self.submit_pending();
            return Ok(());
        }
        // Before anything is recorded as started: an attempt that an existing spool does not know
        // never began, but a missing spool proves nothing.
        if self.job.plan().has_programs() && !self.executors.programs.is_connected() {
            self.reconnect(loaded.last_segment)?;
        }
        // A result that arrived while the job did not run is handled before its attempt counts as
        // interrupted.
        if !mutant::is(Mutant::OfflineResultLost) {
            self.handle_requests(loaded.requests);
        }
        self.decide(&Input::Woke);
        self.recover()?;
        self.submit_probe_result();
        self.complete()?;
        self.fill()?;
        self.submit_pending();
        Ok(())
    }

    /// The starts on record that a keeper may know of.
    fn started_programs(&self) -> BTreeSet<StartId> {
        let attempts = self.job.starts.running.keys().copied();
        let attempts = attempts.filter(|start| action_of(&self.job, *start).is_some_and(Action::is_program));
        let attempts = attempts.chain(self.job.starts.reserved.keys().copied());
        let inputs = self.job.steps.iter().filter_map(|state| match state.stage {
            StepStage::Reading(start) => start,
            StepStage::Waiting
            | StepStage::Running
            | StepStage::Completed
            | StepStage::Failed
            | StepStage::Skipped => None,
        });
        attempts.chain(inputs).collect()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// Tells the job that time has passed, if that has consequences.
    fn wake(&mut self) {
        let now = self.now();
        if effect::next_wake(&self.job, now).is_some_and(|at| at <= now) {
            self.decide(&Input::Woke);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.journal.is_written()
            && (self.job.stage.has_ended()
                || self.job.stage == JobStage::Suspended
                || self.context.shutdown.is_done(&self.job))
    }
}

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

impl JobContext<'_> {
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
        self.is_immediate()
            && job.starts.reserved.is_empty()
            && !self.unbegun.is_empty()
            && running.all(|start| self.unbegun.contains(start))
    }
}
