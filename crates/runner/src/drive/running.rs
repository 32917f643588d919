//! One job that is being run: its state, what is being written of it, and its turn in the loop.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use undaunted_engine::breaker::Gate;
use undaunted_engine::effect;
use undaunted_engine::event::Record;
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, Stage};
use undaunted_engine::task::{Files, SubFlow, Task, task};
use undaunted_policy::Timestamp;
use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::{Claim, RequestId, Store, Version};

use super::breakers::BreakerCache;
use super::error::DriveError;
use super::news::{Ask, Tell, When};
use super::observe::Observer;
use super::pace::Pace;
use super::save::Saving;
use crate::catalog::Book;
use crate::clock::Clock;
use crate::endpoints::Endpoints;
use crate::executor::Calls;
use crate::failpoint;
use crate::folder::JobFolder;
use crate::journal::Held;
use crate::machine::{Keeping, Machine};
use crate::secrets::Secrets;

/// Where jobs are run.
pub struct World {
    /// Where facts are kept.
    pub store: Arc<dyn Store>,
    /// The folder of the store, beside which the folders of the jobs are.
    pub folder: PathBuf,
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
    pub(super) world: &'w World,
    pub(super) observer: Box<dyn Observer + 'w>,
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
    /// When it was saved last.
    pub(super) saving: Saving,
    pub(super) clock: Clock,
    pub(super) folder: JobFolder,
    pub(super) secrets: Secrets,
    pub(super) tell: Tell,
    /// Records that are not handed over yet.
    pub(super) pending: Batch,
    /// What was handed over and is not on the disk yet, oldest first.
    pub(super) batches: VecDeque<Batch>,
    /// What all jobs of the loop know of breakers.
    pub(super) breakers: Rc<RefCell<BreakerCache>>,
    pub(super) keeper: Option<Box<dyn Keeping>>,
    /// Whether what a keeper knew of before is not on record yet: nothing new starts until it is.
    pub(super) is_settling: bool,
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
    /// When it was last asked what may start.
    pub(super) filled_at: Timestamp,
    /// The last address that was to be called, and its origin.
    pub(super) last_origin: Option<(String, Arc<str>)>,
    /// Flows that its items wait for, by the number of the start.
    pub(super) sub_flows: BTreeMap<u64, Arc<SubFlow>>,
    /// What it asks of the loop that runs it.
    pub(super) asks: Vec<Ask>,
}

/// Records that are written together, and what is to be done when they are.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    /// Attempts whose end is in them.
    pub(super) ended: Vec<u64>,
    /// Requests they answer.
    pub(super) taken: Vec<RequestId>,
    /// Breakers that are told something by them.
    pub(super) breakers: BTreeSet<Arc<str>>,
    /// Whether the result of a probe is among it.
    pub(super) ends_probe: bool,
    /// Those of them whose facts are appended behind the records, in that order.
    pub(super) facts: Vec<Arc<str>>,
    /// What else waits for them to be on the disk.
    pub(super) then: Vec<When>,
    /// The version before them.
    pub(super) after: Version,
    /// The job as it is behind them, if it is saved there.
    pub(super) saved: Option<Vec<u8>>,
}

impl<'w> Drive<'w> {
    /// Prepares to run a job, whose news go where `tell` says.
    pub(super) fn new(
        held: Held,
        world: &'w World,
        secrets: Secrets,
        observer: Box<dyn Observer + 'w>,
        tell: Tell,
        breakers: Rc<RefCell<BreakerCache>>,
        webhooks: String,
    ) -> Self {
        Self {
            folder: JobFolder::of(&world.folder, held.job.id()),
            world,
            observer,
            job: held.job,
            is_new: held.is_new,
            with_it: held.with_it,
            first: held.first,
            pace: Pace::new(held.rate, world.machine.uptime()),
            claim: held.claim,
            version: held.version,
            saving: Saving {
                at: held.saved.0,
                bytes: held.saved.1,
                last: Vec::new(),
                under_way: Arc::default(),
            },
            clock: Clock::set_by(&*world.machine),
            secrets,
            tell,
            pending: Batch::default(),
            batches: VecDeque::new(),
            breakers,
            keeper: None,
            is_settling: false,
            calls: Calls::default(),
            webhooks,
            prepared: BTreeMap::new(),
            reading: BTreeSet::new(),
            results: None,
            told: BTreeSet::new(),
            interrupts: 0,
            unbegun: BTreeSet::new(),
            filled_at: Timestamp::ZERO,
            last_origin: None,
            sub_flows: BTreeMap::new(),
            asks: Vec::new(),
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

    /// Gives the job up, so that somebody else may have it.
    pub(super) fn leave(mut self) -> Job {
        if let Some(keeper) = self.keeper.take() {
            drop(keeper);
        }
        self.world.store.let_go(&self.claim);
        self.job
    }

    pub(super) fn begin(&mut self) -> Result<(), DriveError> {
        failpoint::reach("claimed", 1);
        self.look_for_functions()?;
        self.meet_breakers()?;
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
            let seen = self.world.machine.seen_alive(&self.folder);
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
        if !self.is_new && !mutant::is(Mutant::TakenResultLost) {
            self.hear_requests()?;
        }
        self.decide(&Input::Woke);
        self.recover()?;
        self.hand_over_probe();
        self.fill()?;
        self.hand_over();
        Ok(())
    }

    /// A job whose commands are functions is run by the program that has them.
    fn look_for_functions(&self) -> Result<(), DriveError> {
        let machine = &self.world.machine;
        let mut functions = self.job.plan().functions().into_iter();
        match functions.find(|name| !machine.has_function(name)) {
            Some(name) => Err(DriveError::Function {
                name: name.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// What time it is.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.at(self.world.machine.uptime())
    }

    /// Says that time has passed, if that has consequences; also if there is always news.
    fn wake(&mut self) {
        let now = self.now();
        if effect::next_wake(&self.job, now).is_some_and(|at| at <= now) {
            self.decide(&Input::Woke);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let settled = self.batches.is_empty() && self.pending.records.is_empty();
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
        if self.is_settling {
            return Ok(());
        }
        loop {
            self.filled_at = self.now();
            let ready = self.ready(self.filled_at);
            let before = self.pending.records.len();
            for (step, item) in ready {
                if !self.pace.allows(self.world.machine.uptime()) {
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
        let task = self.task(step, item);
        let prepared = task.and_then(|task| {
            let breaker = self.breaker_for(step, item, &task)?;
            Ok((task, breaker))
        });
        let gate = match &prepared {
            Ok((_, Some((name, settings)))) => self.breakers.borrow_mut().ask(
                self.world,
                &self.job,
                (step, item),
                (name, *settings),
            )?,
            Ok((_, None)) | Err(_) => Gate::None,
        };
        let refused = prepared.as_ref().err().cloned();
        let before = self.pending.records.len();
        self.decide(&Input::Start {
            step,
            item,
            refused,
            gate,
        });
        let new = self.pending.records.get(before..).unwrap_or_default();
        let begun = new.iter().find_map(effect::wanted_by);
        if let (Some(effect::Effect::Begin { start, .. }), Ok((task, _))) = (begun, prepared) {
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
        match task(&self.job, step, item, files, self.now()) {
            Ok(Some(task)) => Ok(task),
            Ok(None) => Err("its command cannot be run by this release".to_owned()),
            Err(error) => Err(format!("{error} ({})", error.help())),
        }
    }

    /// When it has to be looked at if nothing happens before, by the machine's uptime.
    pub(super) fn due(&self) -> Option<Duration> {
        /// Whatever is due all the time is not looked at all the time.
        const LEAST: Duration = Duration::from_millis(1);
        let now = self.now();
        // What has fallen due since has not been started.
        let wake = effect::next_wake(&self.job, self.filled_at);
        let wake = wake.filter(|_| self.interrupts == 0);
        let wake = wake.map(|at| at.since(now).max(LEAST));
        // A pace matters only to those who would start.
        let uptime = self.world.machine.uptime();
        let paced = self.pace.wait(uptime);
        let paced = paced.filter(|_| !self.ready(now).is_empty());
        let rule = effect::awaits_rule(&self.job).then_some(self.world.check_interval);
        let looked = self.observer.patience();
        let opening = self.opening().filter(|_| self.interrupts == 0);
        let opening = opening.map(|wait| wait.max(LEAST));
        let first = [wake, paced, rule, looked, opening]
            .into_iter()
            .flatten()
            .min();
        uptime.checked_add(first?)
    }
}
