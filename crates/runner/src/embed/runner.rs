//! The runner of a program that embeds this crate, and the jobs it runs.

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
use crate::drive::{self, in_background};
use crate::error_text::diagnostics_line;
use crate::folder::is_name;
use crate::journal::{self, StoredJob};
use crate::machine::LocalMachine;
use crate::process::random_number;
use crate::{
    ClaimedJob, Clock, Endpoints, Functions, JobResult, JournalError, LocalFolder, Secrets, Services, locked,
};

/// The time between TERM and KILL, for the processes of a shell command.
const GRACE: Duration = Duration::from_secs(5);
/// The longest time between two checks of what follows from time alone.
const CHECK: Duration = Duration::from_secs(1);

/// The callers that wait for a job, by the name of the job.
type JobWaiters = Arc<Mutex<HashMap<String, oneshot::Sender<JobResult>>>>;

/// Held by the thread of the event loop. When that thread ends, even by a panic, dropping the senders wakes
/// every waiting caller with [`EmbedError::Gone`].
struct WaiterNotifier(JobWaiters);

impl Drop for WaiterNotifier {
    fn drop(&mut self) {
        locked(&self.0).clear();
    }
}

/// Runs jobs whose commands are functions of this program.
///
/// A runner has one store and one thread, which runs all of its jobs. Several runners, in this process or in
/// others, may share a store: a job is run by one of them at a time.
///
/// Dropping a runner cancels the running functions and records their attempts as interrupted; use
/// [`suspend`](Self::suspend) to let them finish first. Either way, the jobs can be resumed.
pub struct Runner {
    store: Arc<dyn Store>,
    local: LocalFolder,
    functions: Functions,
    plans: Plans,
    event_loop: drive::LoopHandle,
    waiting: JobWaiters,
    running: Option<JoinHandle<()>>,
    /// Runs the functions, unless the runner was opened in a Tokio runtime.
    runtime: Option<Runtime>,
}

/// A job that is running. It keeps running when this handle is dropped.
pub struct RunningJob {
    id: String,
    store: Arc<dyn Store>,
    event_loop: drive::LoopHandle,
    result: oneshot::Receiver<JobResult>,
}

impl Runner {
    /// Opens the store in a folder, which is created if it does not exist.
    ///
    /// Functions run on the Tokio runtime in which this is called, or on a new one. Shell commands of a
    /// workflow are started by the `undaunted` binary on the `PATH`.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be opened, or if no Tokio runtime can be created.
    pub fn open(folder: impl AsRef<Path>, functions: Functions) -> Result<Self, EmbedError> {
        Self::open_with(folder, functions, "undaunted")
    }

    /// As [`open`](Self::open), with the path of the `undaunted` binary that starts shell commands. It must
    /// be of the same release as this crate.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be opened, or if no Tokio runtime can be created.
    pub fn open_with(
        folder: impl AsRef<Path>,
        functions: Functions,
        program: impl Into<PathBuf>,
    ) -> Result<Self, EmbedError> {
        let location = Location::named(folder.as_ref())?;
        let local = LocalFolder::with(&location)
            .ok_or_else(|| system("a home directory")(std::io::ErrorKind::NotFound.into()))?;
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
            env: std::env::vars_os().collect(),
        };
        let waiting = JobWaiters::default();
        let waiters = WaiterNotifier(Arc::clone(&waiting));
        let (event_loop, running) = in_background(
            services,
            |_| {},
            move |name, result| {
                if let Some(waiting) = locked(&waiters.0).remove(name) {
                    // The caller may have dropped its `RunningJob`.
                    drop(waiting.send(result));
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

    /// Begins a job, or resumes the job of this name if it was begun before. The job is on disk when this
    /// returns, so a program can begin all of its jobs again after a crash.
    ///
    /// A resumed job keeps the items it was begun with. A job that has ended is not run again:
    /// [`RunningJob::wait`] returns it as it ended.
    ///
    /// # Errors
    ///
    /// Returns an error, and begins nothing, if the name or the description is not valid, if the job exists
    /// with another description, if another runner runs it, or if the store cannot be used.
    pub fn begin(&self, job: &str, work: &JobDescription) -> Result<RunningJob, EmbedError> {
        if !is_name(job) {
            let job = job.to_owned();
            return Err(EmbedError::Name { job });
        }
        match journal::claim(&*self.store, job, &self.plans) {
            Ok(claimed) if work.is(&claimed.job.submitted().text) => return self.run_claimed(claimed),
            Ok(claimed) => {
                claimed.unclaim(&*self.store);
                let job = job.to_owned();
                return Err(EmbedError::Exists { job });
            }
            Err(JournalError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = self.local.job(job);
        // A random name, since another process may begin the same job with other items at the same time.
        let own = random_number().map_err(system("random numbers"))?;
        let name = format!("items-{own:016x}.json");
        let path = folder.path().join(&name);
        let submitted = self.submission(job, &work.text(&path.display().to_string()))?;
        if let Some(kept) = work.items() {
            folder.write(&name, kept.as_bytes()).map_err(|source| EmbedError::Items { path, source })?;
        }
        let claimed = journal::submit(&*self.store, submitted, &self.plans, Clock::set().now())?;
        self.run_claimed(claimed)
    }

    /// Resumes a job that was begun before, by this program or another one.
    ///
    /// # Errors
    ///
    /// Returns an error if the job does not exist, if another runner runs it, or if it calls a function that
    /// is not registered.
    pub fn resume(&self, job: &str) -> Result<RunningJob, EmbedError> {
        self.run_claimed(journal::claim(&*self.store, job, &self.plans)?)
    }

    /// Lists the jobs in the store that have not ended and have no runner, such as those that a crash
    /// interrupted. A job that cannot be read is listed too; [`resume`](Self::resume) returns the reason.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn unfinished(&self) -> Result<Vec<String>, EmbedError> {
        let mut found = Vec::new();
        for listed in self.store.list(journal::FAMILY, "")? {
            let id = listed.aggregate.id();
            let owned = self.store.owner(&listed.aggregate)?.is_some();
            if !owned {
                let known = StoredJob::read(&*self.store, id, &self.plans);
                if !known.is_ok_and(|known| known.job.stage.has_ended()) {
                    found.push(id.to_owned());
                }
            }
        }
        Ok(found)
    }

    /// Shuts down in good order: starts nothing new, waits for the running attempts, and suspends the jobs
    /// that have not ended. It blocks, so an async function should call it through `spawn_blocking`.
    pub fn suspend(mut self) {
        self.shut_down(1);
    }

    fn run_claimed(&self, claimed: ClaimedJob) -> Result<RunningJob, EmbedError> {
        let (sender, result) = oneshot::channel();
        let id = claimed.job.id().to_owned();
        let running = RunningJob {
            id: id.clone(),
            store: Arc::clone(&self.store),
            event_loop: self.event_loop.clone(),
            result,
        };
        if claimed.job.stage.has_ended() {
            let job = claimed.unclaim(&*self.store);
            drop(sender.send(Ok(job)));
            return Ok(running);
        }
        let registered = self.registered(&id, claimed.job.plan());
        let ready = registered.and_then(|()| Ok(Secrets::of_job(&claimed.job)?));
        match ready {
            Ok(secrets) => {
                locked(&self.waiting).insert(id, sender);
                self.event_loop.add(claimed, secrets);
                Ok(running)
            }
            Err(error) => {
                claimed.unclaim(&*self.store);
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
        let here = std::env::current_dir().map_err(system("the current directory"))?;
        let plan = Arc::new(Plan::new(workflow));
        self.registered(job, &plan)?;
        let variable = |name: &str| {
            // A secret is never stored.
            let secret = Secrets::is_named(plan.workflow(), name);
            std::env::var(name).ok().filter(|_| !secret)
        };
        let random = || random_number().map_err(system("random numbers"));
        let around = SubmissionContext {
            job: job.to_owned(),
            file: job.to_owned(),
            working_dir: here.display().to_string(),
            seed: random()?,
            operator: &operator,
            variable: &variable,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            flow: None,
            token_key: Some(random()?),
        };
        Ok(submission(Arc::clone(&plan), source.text(), around)?)
    }

    fn shut_down(&mut self, interrupts: u32) {
        for _ in 0..interrupts {
            self.event_loop.interrupt();
        }
        if let Some(running) = self.running.take() {
            // A panic has been printed already.
            drop(running.join());
        }
        if let Some(runtime) = self.runtime.take() {
            // All attempts have ended; tasks that a function spawned are not waited for.
            runtime.shutdown_background();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // The second interrupt ends the running attempts.
        self.shut_down(2);
    }
}

impl RunningJob {
    /// The name of the job.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Cancels the job: running attempts end, and nothing new starts. Returns at once.
    pub fn cancel(&self) {
        self.event_loop.cancel(&self.id);
    }

    /// Waits until the job has ended or was suspended. It blocks the thread; an async function should await
    /// [`finished`](Self::finished) instead.
    ///
    /// # Errors
    ///
    /// Returns an error if the job could not be run to its end. Everything on record stays on record, and
    /// the job can be resumed.
    pub fn wait(self) -> Result<FinishedJob, EmbedError> {
        let Self { id, store, result, .. } = self;
        finished(wait_for(result), id, store)
    }

    /// The async form of [`wait`](Self::wait).
    ///
    /// # Errors
    ///
    /// Returns an error if the job could not be run to its end. Everything on record stays on record, and
    /// the job can be resumed.
    pub async fn finished(self) -> Result<FinishedJob, EmbedError> {
        let Self { id, store, result, .. } = self;
        finished(result.await, id, store)
    }
}

/// Blocks the thread until a future is ready. `oneshot::Receiver::blocking_recv` would panic inside a Tokio
/// runtime.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
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
    result: Result<JobResult, oneshot::error::RecvError>,
    id: String,
    store: Arc<dyn Store>,
) -> Result<FinishedJob, EmbedError> {
    let result: JobResult = result.map_err(|_| EmbedError::Gone { job: id })?;
    let job: Job = result?;
    Ok(FinishedJob { job, store })
}
