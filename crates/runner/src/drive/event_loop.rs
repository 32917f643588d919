//! The event loop: it runs jobs, one or a hundred thousand.
//!
//! A job costs nothing while it waits. It gets a turn when a message comes for it, and at the time it has
//! named. Polling, as for requests in the store, is done once for all jobs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use undaunted_engine::catalog::FlowLifecycle;
use undaunted_engine::job::{Job, Plans};
use undaunted_store::StoreError;

use super::breakers::BreakerCache;
use super::error::DriveError;
use super::handle::{LoopHandle, Message};
use super::message::{JobMessage, Notifier};
use super::observe::{NoJobObserver, Observer};
use super::rounds::Rounds;
use super::running::{JobDriver, Services};
use super::sub_flows::SubFlows;
use crate::catalog::{activated, deactivated};
use crate::journal::ClaimedJob;
use crate::secrets::Secrets;

/// The most messages handled before their consequences.
const AT_ONCE: usize = 4096;

/// How a job was left: its state, or why it could not continue. Nothing that was recorded is lost.
pub type JobResult = Result<Job, DriveError>;

/// Makes the observer of a job that is added while the loop runs.
pub type WatchJobs<'w> = Box<dyn FnMut(&Job) -> Box<dyn Observer + 'w> + 'w>;

/// The event loop: runs jobs until each has ended or was left.
pub struct EventLoop<'w> {
    pub(super) world: &'w Services,
    watch: WatchJobs<'w>,
    pub(super) jobs: HashMap<Arc<str>, LoopJob<'w>>,
    /// When each job wants a turn, as an uptime.
    due: BTreeSet<(Duration, Arc<str>)>,
    pub(super) breakers: Rc<RefCell<BreakerCache>>,
    /// Jobs with programs, for `note_alive`.
    pub(super) programs: BTreeSet<Arc<str>>,
    pub(super) post: Sender<Message>,
    heard: Receiver<Message>,
    /// Where results of accepted attempts are to be sent.
    webhooks: String,
    pub(super) interrupts: u32,
    pub(super) rounds: Rounds<'w>,
    pub(super) left: Vec<(Arc<str>, JobResult)>,
    pub(super) sub_flows: SubFlows,
}

pub(super) struct LoopJob<'w> {
    pub(super) drive: Box<JobDriver<'w>>,
    due: Option<Duration>,
}

impl<'w> EventLoop<'w> {
    pub fn new(world: &'w Services) -> Self {
        let (post, heard) = channel();
        Self {
            world,
            watch: Box::new(|_| Box::new(NoJobObserver)),
            jobs: HashMap::new(),
            due: BTreeSet::new(),
            breakers: Rc::new(RefCell::new(BreakerCache::new(world))),
            programs: BTreeSet::new(),
            post,
            heard,
            webhooks: String::new(),
            interrupts: 0,
            rounds: Rounds::new(world.machine.uptime()),
            left: Vec::new(),
            sub_flows: SubFlows::default(),
        }
    }

    pub fn send_results_to(&mut self, webhooks: String) {
        self.webhooks = webhooks;
    }

    /// Lets sub-flows use the plans of flows that other parts of this process have begun.
    pub fn share_plans(&mut self, plans: Arc<Plans>) {
        self.sub_flows.plans = plans;
    }

    pub fn watched_by(&mut self, watch: WatchJobs<'w>) {
        self.watch = watch;
    }

    pub fn handle(&self) -> LoopHandle {
        LoopHandle::new(self.post.clone())
    }

    /// Runs a job until it has ended, or until the loop was interrupted and everything is in order. After
    /// an error, what was recorded stays, running commands continue, and the job can be resumed.
    pub fn run(mut self, held: ClaimedJob, secrets: Secrets, observer: Box<dyn Observer + 'w>) -> JobResult {
        let name = held.job.id().to_owned();
        self.add(held, secrets, observer);
        let mut own = None;
        loop {
            for (of, left) in self.left.drain(..) {
                if *of == *name {
                    own = Some(left);
                }
            }
            // Every job that was added is left in the end.
            if self.jobs.is_empty()
                && let Some(left) = own.take()
            {
                return left;
            }
            self.wait();
        }
    }

    /// Runs the jobs it is given until it was interrupted and everything is in order.
    pub fn serve(mut self, mut each: impl FnMut(&str, JobResult)) {
        while self.interrupts == 0 || !self.jobs.is_empty() {
            self.wait();
            for (name, left) in self.left.drain(..) {
                each(&name, left);
            }
        }
    }

    fn wait(&mut self) {
        let first = self.heard.recv_timeout(self.idle_time()).ok();
        self.hear_and_act(first);
    }

    /// One iteration without waiting, for a caller with a loop of its own. False if there were no messages
    /// and nothing was to be done.
    pub fn poll(&mut self) -> bool {
        self.hear_and_act(None)
    }

    /// How long it has nothing to do unless a message comes.
    pub fn idle_time(&self) -> Duration {
        let breakers = self.breakers.borrow();
        if breakers.has_news() || (breakers.has_questions() && self.rounds.may_ask()) {
            return Duration::ZERO;
        }
        drop(breakers);
        let now = self.world.machine.uptime();
        let next = self.next_due();
        let patience = self.rounds.idle_time(now);
        next.map_or(patience, |at| at.saturating_sub(now).min(patience))
    }

    /// When the first of its jobs wants a turn, as an uptime.
    pub fn next_due(&self) -> Option<Duration> {
        let breakers = self.breakers.borrow();
        let probe = breakers.admission.next_probe();
        let probe = probe.and_then(|at| {
            let wait = breakers.wait(self.world, at);
            self.world.machine.uptime().checked_add(wait)
        });
        let job = self.due.first().map(|(at, _)| *at);
        let again = self.rounds.next_try();
        [job, probe, again].into_iter().flatten().min()
    }

    /// A job, which may be ahead of the disk.
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.get(name).map(|place| &place.drive.job)
    }

    pub fn take_left(&mut self) -> Vec<(Arc<str>, JobResult)> {
        std::mem::take(&mut self.left)
    }

    pub(super) fn take_on(&mut self, held: ClaimedJob, secrets: Secrets) {
        let observer = (self.watch)(&held.job);
        self.add(held, secrets, observer);
    }

    pub fn add(&mut self, held: ClaimedJob, secrets: Secrets, observer: Box<dyn Observer + 'w>) {
        let name: Arc<str> = held.job.id().into();
        let notifier = Notifier::new(self.post.clone(), Arc::clone(&name));
        let webhooks = self.webhooks.clone();
        let breakers = Rc::clone(&self.breakers);
        let drive = JobDriver::new(held, self.world, secrets, observer, notifier, breakers, webhooks);
        let mut drive = Box::new(drive);
        drive.observer.begins(&drive.job, self.handle());
        if drive.job.plan().has_programs() {
            self.programs.insert(Arc::clone(&name));
        }
        self.note_begun(&drive.job);
        self.begin(drive);
    }

    /// Begins a job; during an outage it is begun later.
    pub(super) fn begin(&mut self, mut drive: Box<JobDriver<'w>>) {
        let begun = match drive.load() {
            Ok(loaded) => drive.begin(loaded),
            Err(error) => match error.outage().cloned() {
                Some(error) => return self.begin_later(*drive, &error),
                None => Err(error),
            },
        };
        let name: Arc<str> = drive.job.shared_id();
        let interrupted = (0..self.interrupts).try_for_each(|_| drive.hear(JobMessage::Interrupt));
        self.jobs.insert(Arc::clone(&name), LoopJob { drive, due: None });
        // Requests to it may be older than the last findings.
        self.rounds.forget_last();
        self.settle(&name, begun.and(interrupted));
    }

    /// Notes in the catalog that a flow is active, unless that is known.
    fn note_begun(&self, job: &Job) {
        if let Some(book) = &self.world.catalog
            && let Some(activated) = activated(job)
            && !job.stage.has_ended()
        {
            let active = Some(FlowLifecycle::Active);
            let known = book.known(|catalog, _| catalog.flows.get(job.id()).map(|it| it.place));
            if known != active {
                book.note(activated);
            }
        }
    }

    /// Notes in the catalog that a flow has ended. Nothing of it runs or waits then.
    fn note_ended(&self, job: &Job) {
        if let Some(book) = &self.world.catalog
            && let Some(deactivated) = deactivated(job)
        {
            book.note(deactivated);
        }
    }

    /// Handles messages and what follows from them. False if there was nothing.
    fn hear_and_act(&mut self, first: Option<Message>) -> bool {
        let mut touched = BTreeMap::new();
        let heard = self.listen(first, &mut touched);
        let now = self.world.machine.uptime();
        while let Some((at, _)) = self.due.first()
            && *at <= now
        {
            if let Some((_, name)) = self.due.pop_first() {
                if let Some(place) = self.jobs.get_mut(&name) {
                    place.due = None;
                }
                touched.insert(name, true);
            }
        }
        let mut breakers = self.breakers.borrow_mut();
        breakers.tick(self.world);
        breakers.admission.wake_due_probers();
        drop(breakers);
        let mut acts = heard;
        loop {
            // A turn of one job may open a breaker, or let another job probe.
            let awakened = self.breakers.borrow_mut().admission.take_jobs_to_wake();
            for name in awakened {
                touched.entry(name).or_default();
            }
            if touched.is_empty() {
                break;
            }
            acts = true;
            for (name, woke) in std::mem::take(&mut touched) {
                if let Some(place) = self.jobs.get_mut(&name) {
                    let turned = place.drive.turn(woke);
                    self.settle(&name, turned);
                }
            }
        }
        self.tell_turned();
        self.ask_store();
        acts
    }

    fn tell_turned(&mut self) {
        let turned = self.breakers.borrow_mut().take_turned(None);
        for turned in turned {
            let cache = self.breakers.borrow();
            let users = cache.admission.users(&turned.breaker);
            let users = users.filter(|user| turned.told.as_ref() != Some(*user));
            let users: Vec<Arc<str>> = users.cloned().collect();
            drop(cache);
            for user in users {
                if let Some(place) = self.jobs.get_mut(&user) {
                    place.drive.turned(&turned);
                }
            }
        }
    }

    /// Handles messages, up to a limit. Returns whether anything follows from them.
    fn listen(&mut self, mut first: Option<Message>, touched: &mut BTreeMap<Arc<str>, bool>) -> bool {
        let mut matters = false;
        for _ in 0..AT_ONCE {
            let Some(post) = first.take().or_else(|| self.heard.try_recv().ok()) else {
                break;
            };
            matters |= self.hear(post, touched);
        }
        matters
    }

    /// Returns whether anything follows from the message.
    fn hear(&mut self, post: Message, touched: &mut BTreeMap<Arc<str>, bool>) -> bool {
        match post {
            Message::Job(name, news) => {
                let Some(place) = self.jobs.get_mut(&name) else {
                    news.nobody_here();
                    return true;
                };
                match place.drive.hear(news) {
                    Ok(()) => {
                        touched.entry(name).or_default();
                        // Before the job is left, whose last attempt may have closed a breaker.
                        self.tell_turned();
                    }
                    Err(error) => self.settle(&name, Err(error)),
                }
            }
            Message::Add(held, secrets) => self.take_on(*held, secrets),
            Message::Interrupt => {
                self.interrupts = self.interrupts.saturating_add(1);
                for name in self.names() {
                    self.hear(Message::Job(name, JobMessage::Interrupt), touched);
                }
                self.leave_during_outage();
            }
            Message::Found(found) => return self.found(*found, touched),
        }
        true
    }

    pub(super) fn note_alive(&self) {
        for name in &self.programs {
            if let Some(place) = self.jobs.get(name) {
                self.world.machine.note_alive(&place.drive.context.folder);
            }
        }
    }

    /// In a fixed order, so that a simulation can be repeated.
    pub(super) fn names(&self) -> BTreeSet<Arc<str>> {
        self.jobs.keys().cloned().collect()
    }

    /// Notes when a job wants its next turn, or leaves one that is over. An outage is no error of the job.
    pub(super) fn settle(&mut self, name: &Arc<str>, turned: Result<(), DriveError>) {
        match outage(&turned) {
            Some(error) => {
                self.begin_outage(&error);
                self.leave(name, Ok(()));
            }
            None => self.leave(name, turned),
        }
    }

    /// As [`Self::settle`], but any error ends the job's run.
    pub(super) fn leave(&mut self, name: &Arc<str>, turned: Result<(), DriveError>) {
        let Some(place) = self.jobs.get_mut(name) else {
            return;
        };
        if let Some(at) = place.due.take() {
            self.due.remove(&(at, Arc::clone(name)));
        }
        let over = place.drive.is_over();
        if over || turned.is_err() {
            self.programs.remove(name);
            self.breakers.borrow_mut().forget(self.world, &place.drive.job);
            if let Some(place) = self.jobs.remove(name) {
                let mut drive = *place.drive;
                // After an error the state may be ahead of the disk.
                if turned.is_ok() {
                    drive.save_before_leaving();
                }
                let job = drive.leave();
                if turned.is_ok() {
                    self.note_ended(&job);
                    self.tell_parent(name, &job);
                }
                self.left.push((Arc::clone(name), turned.map(|()| job)));
            }
            return;
        }
        let asks = place.drive.executors.sub_flows.take_asks();
        place.drive.offer();
        if let Some(at) = place.drive.due() {
            place.due = Some(at);
            self.due.insert((at, Arc::clone(name)));
        }
        for ask in asks {
            self.answer(name, ask);
        }
    }
}

fn outage(turned: &Result<(), DriveError>) -> Option<StoreError> {
    turned.as_ref().err().and_then(DriveError::outage).cloned()
}

impl Drop for EventLoop<'_> {
    /// A program that embeds the loop may live on, so claims of probes are released here.
    fn drop(&mut self) {
        self.breakers.borrow_mut().leave(self.world);
    }
}
