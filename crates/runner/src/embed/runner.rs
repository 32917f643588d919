//! A program that runs jobs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use undaunted_engine::event::JobSubmitted;
use undaunted_engine::job::{Job, Plans};
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::{SubmissionContext, submission};
use undaunted_engine::workflow::{Operator, Source, check};
use undaunted_store::{Location, Store};

use super::{EmbedError, FinishedJob, JobDescription};
use crate::clock::Clock;
use crate::drive::{self, JobResult, Services, in_background};
use crate::endpoints::Endpoints;
use crate::error_text::diagnostics_line;
use crate::executor::Functions;
use crate::folder::{LocalFolder, is_name};
use crate::journal::{self, ClaimedJob, JournalError, KnownJob};
use crate::locked;
use crate::machine::LocalMachine;
use crate::process::random_number;
use crate::secrets::Secrets;

/// How long the programs of a command have between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);
/// How often at least a job is asked whether something follows from the time alone.
const CHECK: Duration = Duration::from_secs(1);

/// Those who wait for jobs, by their names.
type JobWaiters = Arc<Mutex<HashMap<String, oneshot::Sender<JobResult>>>>;

/// Whoever tells them. With it goes all hope of an answer, also if that is by a panic.
struct WaiterNotifier(JobWaiters);

impl Drop for WaiterNotifier {
    fn drop(&mut self) {
        locked(&self.0).clear();
    }
}

/// Runs jobs whose commands are functions of this program.
pub struct Runner {
    store: Arc<dyn Store>,
    local: LocalFolder,
    functions: Functions,
    plans: Plans,
    event_loop: drive::LoopHandle,
    waiting: JobWaiters,
    running: Option<JoinHandle<()>>,
    /// Where functions run, if the program has no such place itself.
    runtime: Option<Runtime>,
}

/// A job that runs. It goes on if nobody waits for it.
pub struct RunningJob {
    id: String,
    store: Arc<dyn Store>,
    event_loop: drive::LoopHandle,
    left: oneshot::Receiver<JobResult>,
}

impl Runner {
    /// Opens the store in a folder, or makes one there. Functions run in the Tokio runtime this is called
    /// in, or in one of their own; shell commands are started by the `undaunted` that PATH finds.
    ///
    /// # Errors
    ///
    /// When the store cannot be used, or no thread can be had.
    pub fn open(folder: impl AsRef<Path>, functions: Functions) -> Result<Self, EmbedError> {
        Self::open_with(folder, functions, "undaunted")
    }

    /// The same, with the program that starts shell commands: `undaunted`, of the same release, wherever it
    /// is.
    ///
    /// # Errors
    ///
    /// When the store cannot be used, or no thread can be had.
    pub fn open_with(
        folder: impl AsRef<Path>,
        functions: Functions,
        program: impl Into<PathBuf>,
    ) -> Result<Self, EmbedError> {
        let location = Location::named(folder.as_ref())?;
        let local = LocalFolder::with(&location)
            .ok_or_else(|| system("home directory")(std::io::ErrorKind::NotFound.into()))?;
        let store = location.open()?;
        let (runtime, handle) = if let Ok(handle) = Handle::try_current() {
            (None, handle)
        } else {
            let runtime = Runtime::new().map_err(system("threads for functions"))?;
            let handle = runtime.handle().clone();
            (Some(runtime), handle)
        };
        let machine = LocalMachine::with_keeper(program.into(), vec!["keeper".into()]);
        let services = Services {
            store: Arc::clone(&store),
            local: local.clone(),
            machine: Arc::new(machine.with_functions(functions.clone(), handle)),
            grace: GRACE,
            check_interval: CHECK,
            catalog: None,
            endpoints: Endpoints::default(),
            around: std::env::vars_os().collect(),
        };
        let waiting = JobWaiters::default();
        let hear = WaiterNotifier(Arc::clone(&waiting));
        let (event_loop, running) = in_background(
            services,
            |_| {},
            move |name, left| {
                if let Some(waiting) = locked(&hear.0).remove(name) {
                    // They may not want to know any more.
                    drop(waiting.send(left));
                }
            },
        );
        Ok(Self {
            store,
            local,
            functions,
            plans: Plans::default(),
            event_loop,
            waiting,
            running: Some(running),
            runtime,
        })
    }

    /// Begins a job, or goes on with the one of this name. It is on the disk when this returns. One that
    /// was begun before has the items it was begun with; one that has ended is given as it is.
    ///
    /// # Errors
    ///
    /// [`EmbedError`]; nothing was begun then.
    pub fn begin(&self, job: &str, work: &JobDescription) -> Result<RunningJob, EmbedError> {
        if !is_name(job) {
            let job = job.to_owned();
            return Err(EmbedError::Name { job });
        }
        match journal::claim(&*self.store, job, &self.plans) {
            Ok(claimed) if work.is(&claimed.job.submitted().text) => return self.run_claimed(claimed),
            Ok(claimed) => {
                claimed.let_go(&*self.store);
                let job = job.to_owned();
                return Err(EmbedError::Exists { job });
            }
            Err(JournalError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = self.local.job(job);
        // A name of its own: whoever begins the same job at the same time must not find their items here.
        let own = random_number().map_err(system("random numbers"))?;
        let name = format!("items-{own:016x}.json");
        let path = folder.path().join(&name);
        let submitted = self.submission(job, &work.text(&path.display().to_string()))?;
        if let Some(kept) = work.items() {
            let written = folder.write(&name, kept.as_bytes());
            written.map_err(|source| EmbedError::Items { path, source })?;
        }
        let claimed = journal::submit(&*self.store, submitted, &self.plans, Clock::set().now())?;
        self.run_claimed(claimed)
    }

    /// Goes on with a job that was begun before.
    ///
    /// # Errors
    ///
    /// When it is not there, somebody else runs it, or it calls a function that is not registered.
    pub fn resume(&self, job: &str) -> Result<RunningJob, EmbedError> {
        self.run_claimed(journal::claim(&*self.store, job, &self.plans)?)
    }

    /// Jobs of the store that have not ended and that nobody runs, whoever began them; also those that
    /// cannot be read, of which [`resume`](Self::resume) says why.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn unfinished(&self) -> Result<Vec<String>, EmbedError> {
        let mut found = Vec::new();
        for listed in self.store.list(journal::FAMILY, "")? {
            let id = listed.aggregate.id();
            let owned = self.store.owner(&listed.aggregate)?.is_some();
            if !owned {
                let known = KnownJob::read(&*self.store, id, &self.plans);
                if !known.is_ok_and(|known| known.job.stage.has_ended()) {
                    found.push(id.to_owned());
                }
            }
        }
        Ok(found)
    }

    /// Leaves in good order: what runs ends, nothing more begins, and jobs that have not ended are
    /// suspended. Waits for that, so async functions call it by way of `spawn_blocking`.
    pub fn suspend(mut self) {
        self.leave(1);
    }

    fn run_claimed(&self, claimed: ClaimedJob) -> Result<RunningJob, EmbedError> {
        let (tell, left) = oneshot::channel();
        let id = claimed.job.id().to_owned();
        let running = RunningJob {
            id: id.clone(),
            store: Arc::clone(&self.store),
            event_loop: self.event_loop.clone(),
            left,
        };
        if claimed.job.stage.has_ended() {
            let job = claimed.let_go(&*self.store);
            // It is received below, by nobody else.
            drop(tell.send(Ok(job)));
            return Ok(running);
        }
        let ready = self.registered(&id, claimed.job.plan()).and_then(|()| {
            let directory = claimed.job.submitted().working_dir.clone();
            Ok(Secrets::read(claimed.job.workflow(), Path::new(&directory))?)
        });
        match ready {
            Ok(secrets) => {
                locked(&self.waiting).insert(id, tell);
                self.event_loop.add(claimed, secrets);
                Ok(running)
            }
            Err(error) => {
                claimed.let_go(&*self.store);
                Err(error)
            }
        }
    }

    fn registered(&self, job: &str, plan: &Plan) -> Result<(), EmbedError> {
        let mut functions = plan.functions().into_iter();
        match functions.find(|name| !self.functions.has(name)) {
            Some(name) => Err(EmbedError::Function { job: job.to_owned(), function: name.to_owned() }),
            None => Ok(()),
        }
    }

    fn submission(&self, job: &str, text: &str) -> Result<JobSubmitted, EmbedError> {
        let operator = Operator { has_functions: true, ..Operator::default() };
        let source = Source::new(job, text);
        let checked = check(&source, &operator);
        let workflow = checked.workflow.ok_or_else(|| EmbedError::JobDescription {
            job: job.to_owned(),
            why: diagnostics_line(&source, &checked.diagnostics),
        })?;
        let here = std::env::current_dir().map_err(system("current directory"))?;
        let plan = Arc::new(Plan::new(workflow));
        self.registered(job, &plan)?;
        let variable = |name: &str| {
            // What is secret is never stored.
            let secret = Secrets::is_named(plan.workflow(), name);
            std::env::var(name).ok().filter(|_| !secret)
        };
        let drawn = || random_number().map_err(system("random numbers"));
        let around = SubmissionContext {
            job: job.to_owned(),
            file: job.to_owned(),
            working_dir: here.display().to_string(),
            seed: drawn()?,
            operator: &operator,
            variable: &variable,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            flow: None,
            token_key: Some(drawn()?),
        };
        Ok(submission(Arc::clone(&plan), source.text(), around)?)
    }

    fn leave(&mut self, asked: u32) {
        for _ in 0..asked {
            self.event_loop.interrupt();
        }
        if let Some(running) = self.running.take() {
            // A panic has been shown already.
            drop(running.join());
        }
        if let Some(runtime) = self.runtime.take() {
            // Nothing of a job runs any more; what a function left behind is not waited for.
            runtime.shutdown_background();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // At once: what runs is ended and recorded as interrupted.
        self.leave(2);
    }
}

impl RunningJob {
    /// What the job is called.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Asks for its end.
    pub fn cancel(&self) {
        self.event_loop.cancel(&self.id);
    }

    /// Waits until it has ended or was suspended. In an async function this keeps others from running;
    /// [`finished`](Self::finished) does not.
    ///
    /// # Errors
    ///
    /// When it could not be gone on with. Nothing that was recorded is lost.
    pub fn wait(self) -> Result<FinishedJob, EmbedError> {
        let Self { id, store, left, .. } = self;
        finished(wait_for(left), id, store)
    }

    /// The same, for async functions.
    ///
    /// # Errors
    ///
    /// When it could not be gone on with. Nothing that was recorded is lost.
    pub async fn finished(self) -> Result<FinishedJob, EmbedError> {
        let Self { id, store, left, .. } = self;
        finished(left.await, id, store)
    }
}

/// Waits for something that is told, by a thread that does nothing else. Tokio's own way panics in a
/// runtime.
fn wait_for<T>(told: impl Future<Output = T>) -> T {
    let mut told = pin!(told);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match told.as_mut().poll(&mut context) {
            Poll::Ready(told) => return told,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> EmbedError {
    move |source| EmbedError::System { what, source }
}

fn finished(
    left: Result<JobResult, oneshot::error::RecvError>,
    id: String,
    store: Arc<dyn Store>,
) -> Result<FinishedJob, EmbedError> {
    let left: JobResult = left.map_err(|_| EmbedError::Gone { job: id })?;
    let job: Job = left?;
    Ok(FinishedJob { job, store })
}
