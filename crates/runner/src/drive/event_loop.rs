//! The event loop, which runs one job or a hundred thousand.
//!
//! A job costs nothing while it waits. It gets a turn when a message for it arrives, and at its due time. The
//! store is polled once for all jobs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use undaunted_engine::catalog::FlowLifecycle;
use undaunted_engine::job::{Job, Plans};
use undaunted_store::StoreError;

use super::polling::StorePolling;
use super::sub_flows::SubFlows;
use super::{
    BreakerCache, DriveError, JobDriver, JobMessage, LoopHandle, Message, NoJobObserver, Notifier, Observer,
    Services,
};
use crate::catalog::{activated, deactivated};
use crate::{ClaimedJob, Secrets};

/// The most messages handled before their consequences are.
const AT_ONCE: usize = 4096;

/// The state of a job that the loop no longer runs, or why it could not continue. Everything on record stays.
pub type JobResult = Result<Job, DriveError>;

/// Makes the observer of a job that is added while the loop runs.
pub type WatchJobs<'w> = Box<dyn FnMut(&Job) -> Box<dyn Observer + 'w> + 'w>;

/// Runs jobs until each has ended, was suspended, or has failed with an error.
pub struct EventLoop<'w> {
    pub(super) services: &'w Services,
    watch: WatchJobs<'w>,
    pub(super) jobs: HashMap<Arc<str>, LoopJob<'w>>,
    /// When each job wants a turn, as an uptime.
    due: BTreeSet<(Duration, Arc<str>)>,
    pub(super) breakers: Rc<RefCell<BreakerCache<'w>>>,
    /// Jobs with programs, for `note_alive`.
    pub(super) programs: BTreeSet<Arc<str>>,
    pub(super) sender: Sender<Message>,
    receiver: Receiver<Message>,
    /// Where results of accepted attempts are to be sent.
    webhooks: String,
    pub(super) interrupts: u32,
    pub(super) polling: StorePolling<'w>,
    pub(super) left: Vec<(Arc<str>, JobResult)>,
    pub(super) sub_flows: SubFlows,
}

pub(super) struct LoopJob<'w> {
    pub(super) drive: Box<JobDriver<'w>>,
    due: Option<Duration>,
}

impl<'w> EventLoop<'w> {
    pub fn new(services: &'w Services) -> Self {
        let (sender, receiver) = channel();
        Self {
            services,
            watch: Box::new(|_| Box::new(NoJobObserver)),
            jobs: HashMap::new(),
            due: BTreeSet::new(),
            breakers: Rc::new(RefCell::new(BreakerCache::new(services))),
            programs: BTreeSet::new(),
            sender,
            receiver,
            webhooks: String::new(),
            interrupts: 0,
            polling: StorePolling::new(services.machine.uptime()),
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

    pub fn observe_with(&mut self, watch: WatchJobs<'w>) {
        self.watch = watch;
    }

    pub fn handle(&self) -> LoopHandle {
        LoopHandle::new(self.sender.clone())
    }

    /// Runs a job until it has ended, or until the loop was interrupted and the job is suspended. After an
    /// error, running commands continue, and the job can be resumed.
    pub fn run(
        mut self,
        claimed: ClaimedJob,
        secrets: Secrets,
        observer: Box<dyn Observer + 'w>,
    ) -> JobResult {
        let name = claimed.job.id().to_owned();
        self.add(claimed, secrets, observer);
        let mut own = None;
        loop {
            for (of, left) in self.left.drain(..) {
                if *of == *name {
                    own = Some(left);
                }
            }
            // Every job that was added ends up in `left`.
            if self.jobs.is_empty()
                && let Some(left) = own.take()
            {
                return left;
            }
            self.wait();
        }
    }

    /// Runs the jobs that are added, until the loop was interrupted and all jobs have ended or are suspended.
    pub fn serve(mut self, mut each: impl FnMut(&str, JobResult)) {
        while self.interrupts == 0 || !self.jobs.is_empty() {
            self.wait();
            for (name, left) in self.left.drain(..) {
                each(&name, left);
            }
        }
    }

    fn wait(&mut self) {
        let first = self.receiver.recv_timeout(self.idle_time()).ok();
        self.handle_messages(first);
    }

    /// One iteration without waiting, for a caller with a loop of its own. False if there was nothing to do.
    pub fn poll(&mut self) -> bool {
        self.handle_messages(None)
    }

    /// How long the loop has nothing to do unless a message arrives.
    pub fn idle_time(&self) -> Duration {
        let breakers = self.breakers.borrow();
        if breakers.has_changes() || (breakers.has_questions() && self.polling.may_ask()) {
            return Duration::ZERO;
        }
        drop(breakers);
        let now = self.services.machine.uptime();
        let next = self.next_due();
        let patience = self.polling.idle_time(now);
        next.map_or(patience, |at| at.saturating_sub(now).min(patience))
    }

    /// When the first job wants a turn, as an uptime.
    pub fn next_due(&self) -> Option<Duration> {
        let breakers = self.breakers.borrow();
        let probe = breakers.admission.next_probe();
        let probe = probe.and_then(|at| {
            let wait = breakers.wait(at);
            self.services.machine.uptime().checked_add(wait)
        });
        let job = self.due.first().map(|(at, _)| *at);
        let again = self.polling.next_try();
        [job, probe, again].into_iter().flatten().min()
    }

    /// The state of a job, which may be ahead of the disk.
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.jobs.get(name).map(|entry| &entry.drive.job)
    }

    pub fn take_finished(&mut self) -> Vec<(Arc<str>, JobResult)> {
        std::mem::take(&mut self.left)
    }

    pub(super) fn add_watched(&mut self, claimed: ClaimedJob, secrets: Secrets) {
        let observer = (self.watch)(&claimed.job);
        self.add(claimed, secrets, observer);
    }

    pub fn add(&mut self, claimed: ClaimedJob, secrets: Secrets, observer: Box<dyn Observer + 'w>) {
        let name: Arc<str> = claimed.job.id().into();
        let notifier = Notifier::new(self.sender.clone(), Arc::clone(&name));
        let webhooks = self.webhooks.clone();
        let breakers = Rc::clone(&self.breakers);
        let drive = JobDriver::new(claimed, self.services, secrets, observer, notifier, breakers, webhooks);
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
        let interrupted = (0..self.interrupts).try_for_each(|_| drive.handle(JobMessage::Interrupt));
        self.jobs.insert(Arc::clone(&name), LoopJob { drive, due: None });
        // Requests to the job may be older than the last findings.
        self.polling.forget_last();
        self.settle(&name, begun.and(interrupted));
    }

    /// Notes in the catalog that a flow is active, unless that is known.
    fn note_begun(&self, job: &Job) {
        if let Some(catalog) = &self.services.catalog
            && let Some(activated) = activated(job)
            && !job.stage.has_ended()
        {
            let active = Some(FlowLifecycle::Active);
            let known = catalog.cached(|catalog, _| catalog.flows.get(job.id()).map(|it| it.lifecycle));
            if known != active {
                catalog.note(activated);
            }
        }
    }
    fn note_ended(&self, job: &Job) {
        if let Some(catalog) = &self.services.catalog
            && let Some(deactivated) = deactivated(job)
        {
            catalog.note(deactivated);
        }
    }

    /// Handles messages and what follows from them. False if there was nothing.
    fn handle_messages(&mut self, first: Option<Message>) -> bool {
        let mut touched = BTreeMap::new();
        let received = self.receive(first, &mut touched);
        let now = self.services.machine.uptime();
        while let Some((at, _)) = self.due.first()
            && *at <= now
        {
            if let Some((_, name)) = self.due.pop_first() {
                if let Some(entry) = self.jobs.get_mut(&name) {
                    entry.due = None;
                }
                touched.insert(name, true);
            }
        }
        let mut breakers = self.breakers.borrow_mut();
        breakers.tick();
        breakers.admission.wake_due_probers();
        drop(breakers);
        let mut acts = received;
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
                if let Some(entry) = self.jobs.get_mut(&name) {
                    let turned = entry.drive.turn(woke);
                    self.settle(&name, turned);
                }
            }
        }
        self.notify_transitions();
        self.ask_store();
        acts
    }

    fn notify_transitions(&mut self) {
        let turned = self.breakers.borrow_mut().take_transitions(None);
        for turned in turned {
            let cache = self.breakers.borrow();
            let users = cache.admission.users(&turned.breaker);
            let users = users.filter(|user| turned.notified.as_ref() != Some(*user));
            let users: Vec<Arc<str>> = users.cloned().collect();
            drop(cache);
            for user in users {
                if let Some(entry) = self.jobs.get_mut(&user) {
                    entry.drive.notify_transition(&turned);
                }
            }
        }
    }

    /// Handles messages, up to a limit. Returns whether anything follows from them.
    fn receive(&mut self, mut first: Option<Message>, touched: &mut BTreeMap<Arc<str>, bool>) -> bool {
        let mut matters = false;
        for _ in 0..AT_ONCE {
            let Some(message) = first.take().or_else(|| self.receiver.try_recv().ok()) else {
                break;
            };
            matters |= self.handle_message(message, touched);
        }
        matters
    }

    /// Returns whether anything follows from the message.
    fn handle_message(&mut self, message: Message, touched: &mut BTreeMap<Arc<str>, bool>) -> bool {
        match message {
            Message::Job(name, message) => {
                let Some(entry) = self.jobs.get_mut(&name) else {
                    message.reject();
                    return true;
                };
                match entry.drive.handle(message) {
                    Ok(()) => {
                        touched.entry(name).or_default();
                        // Before the job is removed: its last attempt may have closed a breaker.
                        self.notify_transitions();
                    }
                    Err(error) => self.settle(&name, Err(error)),
                }
            }
            Message::Add(claimed, secrets) => self.add_watched(*claimed, secrets),
            Message::Interrupt => {
                self.interrupts = self.interrupts.saturating_add(1);
                for name in self.names() {
                    self.handle_message(Message::Job(name, JobMessage::Interrupt), touched);
                }
                self.leave_during_outage();
            }
            Message::Found(found) => return self.found(*found, touched),
        }
        true
    }

    pub(super) fn note_alive(&self) {
        for name in &self.programs {
            if let Some(entry) = self.jobs.get(name) {
                self.services.machine.note_alive(&entry.drive.context.folder);
            }
        }
    }

    /// The names of all jobs, in a fixed order, so that a simulation can be repeated.
    pub(super) fn names(&self) -> BTreeSet<Arc<str>> {
        self.jobs.keys().cloned().collect()
    }

    /// Notes when a job wants its next turn, or removes a job that is over. An outage is not an error of the
    /// job.
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
        let Some(entry) = self.jobs.get_mut(name) else {
            return;
        };
        if let Some(at) = entry.due.take() {
            self.due.remove(&(at, Arc::clone(name)));
        }
        let over = entry.drive.is_over();
        if over || turned.is_err() {
            self.programs.remove(name);
            self.breakers.borrow_mut().forget(&entry.drive.job);
            if let Some(entry) = self.jobs.remove(name) {
                let mut drive = *entry.drive;
                // After an error the state may be ahead of the disk.
                if turned.is_ok() {
                    drive.save_before_leaving();
                }
                let job = drive.leave();
                if turned.is_ok() {
                    self.note_ended(&job);
                    self.report_to_parent(name, &job);
                }
                self.check_left(name, turned.is_ok() && job.stage.has_ended());
                self.left.push((Arc::clone(name), turned.map(|()| job)));
            }
            return;
        }
        let requests = entry.drive.executors.sub_flows.take_requests();
        entry.drive.offer();
        if let Some(at) = entry.drive.due() {
            entry.due = Some(at);
            self.due.insert((at, Arc::clone(name)));
        }
        for request in requests {
            self.handle_sub_flow_request(name, request);
        }
        self.check_cancelled(name);
    }
}

fn outage(turned: &Result<(), DriveError>) -> Option<StoreError> {
    turned.as_ref().err().and_then(DriveError::outage).cloned()
}

impl Drop for EventLoop<'_> {
    /// A program that embeds the loop may live on, so claims of probes are released here.
    fn drop(&mut self) {
        self.breakers.borrow_mut().leave();
    }
}

/// Runs an event loop in a new thread until it is interrupted. `prepare` is called first, and `each` for
/// every job that the loop no longer runs.
pub fn in_background(
    services: Services,
    prepare: impl FnOnce(&mut EventLoop<'_>) + Send + 'static,
    each: impl FnMut(&str, JobResult) + Send + 'static,
) -> (LoopHandle, JoinHandle<()>) {
    let (sender, receiver) = sync_channel(1);
    let running = std::thread::spawn(move || {
        let mut event_loop = EventLoop::new(&services);
        prepare(&mut event_loop);
        // The caller is waiting for this.
        drop(sender.send(event_loop.handle()));
        event_loop.serve(each);
    });
    let event_loop = receiver.recv().unwrap_or_else(|_| LoopHandle::disconnected());
    (event_loop, running)
}
