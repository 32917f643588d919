//! The loop.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use undaunted_engine::breaker::{BreakerRecord, Told};
use undaunted_engine::effect;
use undaunted_engine::event::Record;
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, Stage};
use undaunted_engine::task::{Files, Task, task};
use undaunted_store::{Claim, RequestId, Store, Version};

use super::error::DriveError;
use super::news::{Handle, News};
use super::observe::Observer;
use super::pace::Pace;
use crate::clock::{Clock, wall};
use crate::executor::Calls;
use crate::failpoint;
use crate::folder::JobFolder;
use crate::journal::Held;
use crate::keeper::Keeper;
use crate::secrets::Secrets;

/// How often to look whether somebody asked for something.
const LOOK: Duration = Duration::from_millis(200);

/// Where jobs are run.
pub struct World<'w> {
    /// Where facts are kept.
    pub store: &'w dyn Store,
    /// The folder of the store, beside which the folders of the jobs are.
    pub folder: PathBuf,
    /// The program that is the keeper, if it is called with `keeper_args` and a folder.
    pub keeper: PathBuf,
    /// See `keeper`.
    pub keeper_args: Vec<OsString>,
    /// How long the processes of a command have between TERM and KILL.
    pub grace: Duration,
    /// How often at least a job is asked whether something follows from the time alone.
    pub check_interval: Duration,
}

/// A job that is being run.
pub struct Drive<'w> {
    pub(super) world: &'w World<'w>,
    pub(super) observer: &'w mut dyn Observer,
    pub(super) job: Job,
    pub(super) is_new: bool,
    /// What was recorded with its submission.
    pub(super) with_it: Vec<Record>,
    /// What it is told before it goes on.
    pub(super) first: Option<Input>,
    pub(super) pace: Pace,
    pub(super) claim: Claim,
    /// How long the journal is when everything handed over is written.
    pub(super) version: Version,
    pub(super) clock: Clock,
    pub(super) folder: JobFolder,
    pub(super) secrets: Secrets,
    /// The environment of this process.
    pub(super) around: Vec<(OsString, OsString)>,
    pub(super) tell: Sender<News>,
    pub(super) news: Receiver<News>,
    /// Records that are not handed over yet.
    pub(super) pending: Batch,
    /// What was handed over and is not on the disk yet, oldest first.
    pub(super) batches: VecDeque<Batch>,
    /// What is on the disk and was not acted upon yet.
    pub(super) on_disk: VecDeque<Batch>,
    /// News that came while something else was waited for.
    pub(super) set_aside: VecDeque<News>,
    /// How many records each breaker has when everything handed over is written.
    pub(super) breakers: BTreeMap<Arc<str>, Version>,
    pub(super) keeper: Option<Keeper>,
    /// Requests that are under way.
    pub(super) calls: Calls,
    /// Where results that come later are to be sent.
    pub(super) webhooks: String,
    /// What attempts are to do that wait for their record, by the number of the start.
    pub(super) prepared: BTreeMap<u64, Task>,
    /// Maps whose items are being read.
    pub(super) reading: BTreeSet<u32>,
    /// The results of the map, once something needs them.
    pub(super) results: Option<Value>,
    /// Starts that a keeper may know of.
    pub(super) told: BTreeSet<u64>,
    /// How often somebody asked it to leave.
    pub(super) interrupts: u32,
    /// Attempts that were to begin and did not because it leaves.
    pub(super) unbegun: BTreeSet<u64>,
    pub(super) looked: Instant,
    pub(super) pulse: u64,
    /// The pulse of the store when breakers were last looked at.
    pub(super) breakers_pulse: u64,
}

/// Records that are written together, and what is to be done when they are.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    /// Attempts whose end is in them.
    pub(super) ended: Vec<u64>,
    /// Requests they answer.
    pub(super) taken: Vec<RequestId>,
    /// What breakers were told by them, and how that changes those.
    pub(super) told: Vec<Told>,
    pub(super) changes: Vec<(Arc<str>, BreakerRecord)>,
    /// The version before them.
    pub(super) after: Version,
}

impl<'w> Drive<'w> {
    /// Prepares to run a job.
    pub fn new(
        held: Held,
        world: &'w World<'w>,
        secrets: Secrets,
        observer: &'w mut dyn Observer,
    ) -> Self {
        let (tell, news) = channel();
        Self {
            folder: JobFolder::of(&world.folder, held.job.id()),
            world,
            observer,
            job: held.job,
            is_new: held.is_new,
            with_it: held.with_it,
            first: held.first,
            pace: Pace::new(held.rate),
            claim: held.claim,
            version: held.version,
            clock: Clock::set(),
            secrets,
            around: std::env::vars_os().collect(),
            tell,
            news,
            pending: Batch::default(),
            batches: VecDeque::new(),
            on_disk: VecDeque::new(),
            set_aside: VecDeque::new(),
            breakers: BTreeMap::new(),
            keeper: None,
            calls: Calls::default(),
            webhooks: String::new(),
            prepared: BTreeMap::new(),
            reading: BTreeSet::new(),
            results: None,
            told: BTreeSet::new(),
            interrupts: 0,
            unbegun: BTreeSet::new(),
            looked: Instant::now(),
            pulse: 0,
            breakers_pulse: 0,
        }
    }

    /// Says where results that come later are to be sent.
    pub fn send_results_to(&mut self, webhooks: String) {
        self.webhooks = webhooks;
    }

    /// A way to ask it to leave.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            news: self.tell.clone(),
        }
    }

    /// Runs the job until it has ended, or somebody asked to leave and all is in order.
    ///
    /// # Errors
    ///
    /// [`DriveError`]; what was recorded stays, commands that run go on, and the job can be gone on
    /// with.
    pub fn run(mut self) -> Result<Job, DriveError> {
        let handle = self.handle();
        self.observer.begins(handle);
        let done = self.begin().and_then(|()| {
            while !self.is_over() {
                self.listen()?;
                self.wake();
                self.observer.tick(&self.job);
                self.look()?;
                self.fill()?;
                self.hand_over()?;
            }
            Ok(())
        });
        if let Some(keeper) = self.keeper.take() {
            drop(keeper);
        }
        // If it cannot be given up it ends with the store's handle.
        drop(self.world.store.release(&self.claim));
        done.map(|()| self.job)
    }

    fn begin(&mut self) -> Result<(), DriveError> {
        failpoint::reach("claimed", 1);
        self.meet_breakers()?;
        self.look_at_probes()?;
        for (seq, record) in (2..).zip(&self.with_it) {
            self.observer.recorded(&self.job, seq, record);
        }
        let first = self.first.take();
        if self.job.stage.has_ended() {
            // Only one thing can be asked of a job that has ended: to go on with its dead letters.
            if let Some(first) = &first {
                self.decide(first);
            }
        } else if !self.is_new {
            self.told = self.started();
            let seen = self.folder.seen_alive().map(wall);
            self.decide(&Input::Resume { seen });
            if let Some(first) = &first {
                self.decide(first);
            }
            if let Some(Input::Update { .. }) = first {
                self.configure_breakers()?;
                self.meet_breakers()?;
            }
        }
        if self.job.stage.has_ended() {
            return self.hand_over();
        }
        // Before anything is recorded as started: what a spool that is there does not know never
        // began, but a spool that is not there knows nothing.
        if self.job.plan().has_programs() {
            self.attach()?;
        }
        self.decide(&Input::Woke);
        self.recover()?;
        self.fill()?;
        self.hand_over()
    }

    /// Says that time has passed, if that has consequences; also if there is always news.
    fn wake(&mut self) {
        let now = self.clock.now();
        if effect::next_wake(&self.job, now).is_some_and(|at| at <= now) {
            self.decide(&Input::Woke);
        }
    }

    fn is_over(&self) -> bool {
        let settled =
            self.batches.is_empty() && self.on_disk.is_empty() && self.pending.records.is_empty();
        let only_unbegun = self
            .job
            .running
            .keys()
            .all(|start| self.unbegun.contains(start));
        settled
            && (self.job.stage.has_ended()
                || self.job.stage == Stage::Suspended
                || (self.interrupts > 1 && only_unbegun && !self.unbegun.is_empty()))
    }

    /// Starts everything that may start now.
    fn fill(&mut self) -> Result<(), DriveError> {
        if self.interrupts > 0 {
            if self.reading.is_empty() {
                self.decide(&Input::Suspend);
            }
            return Ok(());
        }
        loop {
            let ready = effect::ready(&self.job, self.clock.now());
            let before = self.pending.records.len();
            for (step, item) in ready {
                if !self.pace.allows() {
                    return Ok(());
                }
                if !self.start(step, item)? {
                    return Ok(());
                }
            }
            if self.pending.records.len() == before {
                return Ok(());
            }
        }
    }

    /// Starts the next attempt of an item. False if it has to wait for the disk first.
    fn start(&mut self, step: u32, item: u32) -> Result<bool, DriveError> {
        if self.needs_results(step) {
            if !self.batches.is_empty() || !self.pending.records.is_empty() {
                return Ok(false);
            }
            self.read_results()?;
        }
        let mut prepared = self.task(step, item);
        if let Ok(task) = &prepared
            && let Err(why) = self.aim(step, item, task)?
        {
            prepared = Err(why);
        }
        let refused = prepared.as_ref().err().cloned();
        let before = self.pending.records.len();
        self.decide(&Input::Start {
            step,
            item,
            refused,
        });
        let new = self.pending.records.get(before..).unwrap_or_default();
        let begun = new.iter().find_map(effect::wanted_by);
        if let (Some(effect::Effect::Begin { start, .. }), Ok(task)) = (begun, prepared) {
            self.prepared.insert(start, task);
        }
        Ok(true)
    }

    /// What the next attempt of an item is to do, or why that cannot be said.
    pub(super) fn task(&self, step: u32, item: u32) -> Result<Task, String> {
        let item_file = self.folder.item(step, item);
        let results_file = self.folder.results();
        let files = Files {
            item: &item_file.to_string_lossy(),
            results: self.results.as_ref(),
            results_file: &results_file.to_string_lossy(),
            secrets: self.secrets.values(),
            webhooks: &self.webhooks,
        };
        match task(&self.job, step, item, files, self.clock.now()) {
            Ok(Some(task)) => Ok(task),
            Ok(None) => Err("its command cannot be run by this release".to_owned()),
            Err(error) => Err(format!("{error} ({})", error.help())),
        }
    }

    /// How long nothing happens by itself.
    pub(super) fn patience(&self) -> Duration {
        let now = self.clock.now();
        let next = effect::next_wake(&self.job, now).filter(|_| self.interrupts == 0);
        let wake = next.map_or(LOOK, |at| at.since(now));
        // A pace matters only to those who would start.
        let paced = match self.pace.wait() {
            Some(wait) if !effect::ready(&self.job, now).is_empty() => wait,
            _ => LOOK,
        };
        wake.min(paced).min(LOOK).min(self.world.check_interval)
    }

    pub(super) fn may_look(&mut self) -> bool {
        let due = self.looked.elapsed() >= LOOK;
        if due {
            self.folder.note_alive();
            self.looked = Instant::now();
        }
        due
    }
}
