//! One job that is being run: its state, what is being written of it, and its turn in the loop.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::effect;
use undaunted_engine::event::Record;
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, Stage, StepStage};
use undaunted_engine::workflow::Action;
use undaunted_policy::Timestamp;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::Store;

use super::act::action_of;
use super::breakers::BreakerCache;
use super::context::JobContext;
use super::error::DriveError;
use super::job_journal::JobJournal;
use super::message::Notifier;
use super::observe::Observer;
use super::pace::Pace;
use super::save::Saving;
use super::starter::Starter;
use crate::catalog::Book;
use crate::endpoints::Endpoints;
use crate::executor::Executors;
use crate::failpoint;
use crate::folder::LocalFolder;
use crate::journal::ClaimedJob;
use crate::machine::Machine;
use crate::secrets::Secrets;

/// Where jobs are run.
pub struct World {
    /// Where facts are kept.
    pub store: Arc<dyn Store>,
    /// Where this process keeps spools, item files and results.
    pub local: LocalFolder,
    /// What time it is, and who does what jobs ask for.
    pub machine: Arc<dyn Machine>,
    /// How long the processes of a command have between TERM and KILL.
    pub grace: Duration,
    /// How often at least a job is asked whether something follows from the time alone.
    pub check_interval: Duration,
    /// The steps and flows of the store, if jobs are written down there.
    pub catalog: Option<Book>,
    /// The addresses that may be called.
    pub endpoints: Endpoints,
    /// The environment of this process.
    pub around: Vec<(OsString, OsString)>,
}

/// A job that is being run.
pub(super) struct Drive<'w> {
    pub(super) job: Job,
    pub(super) context: JobContext<'w>,
    pub(super) journal: JobJournal,
    pub(super) executors: Executors,
    pub(super) starter: Starter,
    /// What all jobs of the loop know of breakers.
    pub(super) breakers: Rc<RefCell<BreakerCache>>,
    pub(super) observer: Box<dyn Observer + 'w>,
    pub(super) origin: Origin,
}

/// How the job came to be run here.
pub(super) struct Origin {
    /// Whether it was submitted by this process, just now.
    pub(super) is_new: bool,
    /// What was recorded with its submission.
    with_it: Vec<Record>,
    /// What it is told before it goes on.
    first: Option<Input>,
}

impl<'w> Drive<'w> {
    /// Prepares to run a job.
    pub(super) fn new(
        held: ClaimedJob,
        world: &'w World,
        secrets: Secrets,
        observer: Box<dyn Observer + 'w>,
        notifier: Notifier,
        breakers: Rc<RefCell<BreakerCache>>,
        webhooks: String,
    ) -> Self {
        let folder = world.local.job(held.job.id());
        let saving = Saving {
            at: held.saved.0,
            bytes: held.saved.1,
            last: Vec::new(),
            under_way: Arc::default(),
        };
        Self {
            context: JobContext::new(world, folder, secrets, webhooks, notifier),
            job: held.job,
            journal: JobJournal::new(held.claim, held.version, saving),
            executors: Executors::default(),
            starter: Starter::new(Pace::new(held.rate, world.machine.uptime())),
            breakers,
            observer,
            origin: Origin {
                is_new: held.is_new,
                with_it: held.with_it,
                first: held.first,
            },
        }
    }

    /// What follows from what was heard, and from the time if that is why it is looked at.
    pub(super) fn turn(&mut self, woke: bool) -> Result<(), DriveError> {
        if woke {
            self.decide(&Input::Woke);
        }
        self.wake();
        self.observer
            .tick(&self.job, &self.breakers.borrow().admission);
        self.fill()?;
        self.hand_over();
        self.save_at_rest();
        Ok(())
    }

    /// Gives the job up, so that another process may have it.
    pub(super) fn leave(self) -> Job {
        // The keeper is left before another engine may reach it.
        drop(self.executors);
        self.context.world.store.let_go(&self.journal.claim);
        self.job
    }

    pub(super) fn begin(&mut self) -> Result<(), DriveError> {
        failpoint::reach("claimed", 1);
        for command in self.job.plan().commands() {
            let executor = self.executors.of(Some(&command.action));
            executor.check(&command.action, &self.context)?;
        }
        self.meet_breakers()?;
        // Before anything is decided: if the store cannot be reached, this is called again.
        let requests = if self.origin.is_new {
            Vec::new()
        } else {
            let store = &self.context.world.store;
            store.requests(&self.journal.claim.aggregate)?
        };
        for (seq, record) in (2..).zip(&self.origin.with_it) {
            self.observer.recorded(&self.job, seq, record);
        }
        let first = self.origin.first.take();
        if self.job.stage.has_ended() {
            // Only one thing can be asked of a job that has ended: to go on with its dead letters.
            if let Some(first) = &first {
                self.decide(first);
            }
        } else if !self.origin.is_new {
            let told = self.started_programs();
            self.executors.programs.were_told(told);
            let machine = &self.context.world.machine;
            let seen = machine.seen_alive(&self.context.folder);
            self.decide(&Input::Resume { seen });
            if let Some(first) = &first {
                self.decide(first);
            }
            if let Some(Input::Update { .. }) = first {
                self.configure_breakers()?;
            }
        }
        if self.job.stage.has_ended() {
            self.hand_over();
            return Ok(());
        }
        // Before anything is recorded as started: what a spool that is there does not know never
        // began, but a spool that is not there knows nothing.
        if self.job.plan().has_programs() {
            self.attach()?;
        }
        // A result that was taken while nobody ran the job counts before it is said that nobody knows
        // what became of the attempt.
        if !mutant::is(Mutant::TakenResultLost) {
            self.hear_requests(requests);
        }
        self.decide(&Input::Woke);
        self.recover()?;
        self.hand_over_probe();
        self.fill()?;
        self.hand_over();
        Ok(())
    }

    /// The starts on record that a keeper was told of, or was about to be.
    fn started_programs(&self) -> BTreeSet<u64> {
        let attempts = self.job.starts.running.keys().copied();
        let attempts =
            attempts.filter(|start| action_of(&self.job, *start).is_some_and(Action::is_program));
        let inputs = self.job.steps.iter().filter_map(|state| match state.stage {
            StepStage::Reading(start) => start,
            _ => None,
        });
        attempts.chain(inputs).collect()
    }

    /// What time it is.
    pub(super) fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// Says that time has passed, if that has consequences; also if there is always news.
    fn wake(&mut self) {
        let now = self.now();
        if effect::next_wake(&self.job, now).is_some_and(|at| at <= now) {
            self.decide(&Input::Woke);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.journal.is_written()
            && (self.job.stage.has_ended()
                || self.job.stage == Stage::Suspended
                || self.context.leaving.is_done(&self.job))
    }
}
