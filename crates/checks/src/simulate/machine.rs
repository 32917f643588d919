//! The machine of a simulated process.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_policy::{FailureCause, Timestamp};
use undaunted_runner::drive::Notifier;
use undaunted_runner::folder::JobFolder;
use undaunted_runner::keeper::{CommandSpec, KeeperError, KeeperRefusal};
use undaunted_runner::machine::{
    AttemptEnds, CancelCall, CommandHost, ExpectedEnd, KeeperAddress, Machine, ReachedKeeper,
};
use undaunted_runner::{ExecutorMessage, HttpAnswer, HttpOrder, NewFile, attempt_end};

use super::case::{ScriptedAttempt, ScriptedEnd};
use super::oracle::RequestOrigin;
use super::results::SentResult;
use super::world::{KeeperMessage, Liveness, SharedWorld, SimEvent, SimWorld, lock};

/// The simulated world as one process sees it.
pub(super) struct SimMachine {
    pub(super) shared: SharedWorld,
    pub(super) process: usize,
}

impl Machine for SimMachine {
    fn uptime(&self) -> Duration {
        lock(&self.shared).now
    }

    fn clocks(&self) -> (Timestamp, Duration) {
        let world = lock(&self.shared);
        (world.wall(), world.now)
    }

    /// Low, so that the small jobs here are recovered from snapshots too.
    fn save_after(&self) -> u64 {
        7
    }

    /// Low, so that the short breaker journals here are trimmed too.
    fn trim_after(&self) -> u64 {
        9
    }

    /// At once: when a snapshot is saved must not change anything else.
    fn save(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn run_in_background(&self, work: Box<dyn FnOnce() + Send>) {
        let mut world = lock(&self.shared);
        let process = self.process;
        if world.touch(process) == Liveness::Alive {
            let takes = world.fault_plan.message_delay;
            world.after(takes, SimEvent::BackgroundWork { process, work });
        }
    }

    fn send(&self, order: HttpOrder, notifier: Notifier) -> CancelCall {
        let mut world = lock(&self.shared);
        world.requests += 1;
        let number = world.requests;
        if world.touch(self.process) == Liveness::Alive {
            world.receive(self.process, number, &order, notifier);
        }
        drop(world);
        let (shared, process) = (SharedWorld::clone(&self.shared), self.process);
        Box::new(move || {
            let mut world = lock(&shared);
            world.processes[process].asking.remove(&number);
        })
    }

    fn keeper(&self, reach: KeeperAddress<'_>) -> Result<ReachedKeeper, KeeperError> {
        let mut world = lock(&self.shared);
        let job = job_of(reach.folder);
        if world.touch(self.process) == Liveness::Dead {
            return Err(KeeperError::Silent(io::ErrorKind::BrokenPipe.into()));
        }
        let endings = Arc::new(AttemptEnds::new(&reach.started));
        let is_connected_to = Arc::clone(&endings);
        let reached = world.reach_keeper(&job, self.process, reach, is_connected_to);
        // What survives a crash is ended by the next keeper.
        let Some((fates, others)) = reached else {
            return Err(KeeperError::Refused(KeeperRefusal::Busy));
        };
        let keeper =
            SimKeeper { shared: SharedWorld::clone(&self.shared), process: self.process, job, endings };
        Ok(ReachedKeeper { keeper: Box::new(keeper), fates, others })
    }

    fn has_spool(&self, folder: &JobFolder) -> bool {
        let world = lock(&self.shared);
        let keeper = world.keepers.get(&job_of(folder));
        keeper.is_some_and(|keeper| keeper.is_there)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let world = lock(&self.shared);
        // The input of a map is named after its job.
        let name = path.parent().and_then(Path::file_name);
        let name = name.unwrap_or_default().to_string_lossy();
        let case = world.cases.get(&*name);
        let case = case.ok_or(io::ErrorKind::NotFound)?;
        Ok(case.items().into_bytes())
    }

    fn write(&self, _: &NewFile<'_>) -> io::Result<()> {
        Ok(())
    }

    fn write_private(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        let mut world = lock(&self.shared);
        match world.touch(self.process) {
            Liveness::Alive => Ok(()),
            Liveness::Dead => Err(io::ErrorKind::Interrupted.into()),
        }
    }

    fn note_alive(&self, folder: &JobFolder) {
        let mut world = lock(&self.shared);
        let now = world.wall();
        if world.is_alive(self.process) {
            world.last_seen.insert(job_of(folder), now);
        }
    }

    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp> {
        lock(&self.shared).last_seen.get(&job_of(folder)).copied()
    }
}

fn job_of(folder: &JobFolder) -> String {
    let name = folder.path().file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

struct SimKeeper {
    shared: SharedWorld,
    process: usize,
    job: String,
    endings: Arc<AttemptEnds>,
}

impl SimKeeper {
    fn log(&self, message: KeeperMessage) {
        let mut world = lock(&self.shared);
        if world.touch(self.process) == Liveness::Dead {
            return;
        }
        let keeper = world.keepers.get(&self.job);
        if keeper.is_some_and(|keeper| keeper.generation > 0 && keeper.is_connected_to(self.process)) {
            world.send_to_keeper(&self.job, message);
        }
    }
}

impl Drop for SimKeeper {
    fn drop(&mut self) {
        lock(&self.shared).leave_keeper(&self.job, self.process);
    }
}

impl CommandHost for SimKeeper {
    fn run(&self, spec: CommandSpec, expected: ExpectedEnd) {
        self.endings.expect(StartId(spec.id), expected);
        self.log(KeeperMessage::Run(Box::new(spec)));
    }

    fn reserve(&self, spec: CommandSpec, expected: ExpectedEnd, slots: u32) {
        self.endings.expect(StartId(spec.id), expected);
        self.log(KeeperMessage::Reserve(Box::new(spec), slots));
    }

    fn withdraw(&self) {
        self.log(KeeperMessage::Withdraw);
    }

    fn flush(&self) {}

    fn cancel(&self, start: StartId) {
        self.log(KeeperMessage::Cancel(start.0));
    }

    fn cancel_all(&self, _: i32) {
        self.log(KeeperMessage::CancelAll);
    }

    fn forget(&self, start: StartId) {
        self.endings.forget(start);
        self.log(KeeperMessage::Forget(start.0));
    }

    fn trust(&self) {
        self.log(KeeperMessage::Trust);
    }
}

impl SimWorld {
    /// A request reaches its target, which answers or does not.
    fn receive(&mut self, process: usize, number: u64, order: &HttpOrder, notifier: Notifier) {
        let Some(place) = self.oracle.origin_of(order) else {
            self.oracle.violation("a request was sent whose start is not recorded".to_owned());
            return;
        };
        self.oracle.request_sent(&place.job, order.start);
        let label = label_of(&order.call.url);
        let act = self.act(&place.job, &label, &place.item, place.attempt);
        self.log(|| {
            format!(
                "request {} of {}: {label} {} (attempt {})",
                order.start, place.job, place.item, place.attempt
            )
        });
        let (twice, lost) = (self.fault_plan.twice, self.fault_plan.lost);
        let twice = twice > 0 && self.random.chance(twice, 100_000);
        let lost = lost > 0 && self.random.chance(lost, 100_000);
        let mut takes = act.takes;
        let mut answer = answered(order, &act);
        if lost || matches!(act.end, ScriptedEnd::Hang) {
            takes = Duration::from_hours(1);
            let broken = (FailureCause::Network, "the connection was closed");
            answer = failed(order.start, broken.0, broken.1);
        }
        if let Some(timeout) = order.timeout
            && timeout <= takes
        {
            takes = timeout;
            answer = failed(order.start, FailureCause::Timeout, "no answer in time");
        }
        if answer.failure.is_none() && !lost {
            self.send_result(order.start, &place, &act, takes, twice);
        }
        let answer = match answer.failure {
            None if order.call.later => ExecutorMessage::Accepted(order.start),
            None => {
                self.oracle.request_succeeded(&place.job, order.start);
                ExecutorMessage::Ended(Box::new(answer))
            }
            Some(_) => ExecutorMessage::Ended(Box::new(answer)),
        };
        self.processes[process].asking.insert(number, (notifier, answer));
        self.after(takes, SimEvent::HttpAnswered { process, number });
    }

    /// The result of an accepted attempt is sent when it is done, perhaps twice.
    fn send_result(
        &mut self,
        start: StartId,
        place: &RequestOrigin,
        act: &ScriptedAttempt,
        takes: Duration,
        twice: bool,
    ) {
        let ScriptedEnd::Later(result) = &act.end else { return };
        if !matches!(result.end, ScriptedEnd::Success(_) | ScriptedEnd::Denied) {
            return;
        }
        for _ in 0..=u8::from(twice) {
            let late = Duration::from_millis(if twice { self.random.between(0, 3000) } else { 0 });
            let wait = takes.saturating_add(result.takes).saturating_add(late);
            let result = SentResult {
                job: place.job.clone(),
                step: place.step.clone(),
                token: place.token.clone(),
                start,
                act: (**result).clone(),
            };
            self.after(wait, SimEvent::ResultSent(Box::new(result)));
        }
    }

    /// A response reaches the process that sent the request.
    pub(super) fn answer(&mut self, process: usize, number: u64) {
        let state = &mut self.processes[process];
        if let Some((notifier, answer)) = state.asking.remove(&number)
            && !state.is_dead
        {
            notifier.send(answer);
            self.wake(process);
        }
    }
}

/// The label of the command in a URL.
fn label_of(url: &str) -> String {
    let mut pieces = url.split('/').skip(3);
    pieces.next().unwrap_or_default().to_owned()
}

fn failed(start: StartId, cause: FailureCause, error: &str) -> AttemptEnd {
    AttemptEnd { start, failure: Some(cause), error: error.to_owned(), ..AttemptEnd::default() }
}

/// How an attempt ends with this response.
fn answered(order: &HttpOrder, act: &ScriptedAttempt) -> AttemptEnd {
    let (status, retry_after, body) = match &act.end {
        ScriptedEnd::Success(output) => (200, None, success(output)),
        ScriptedEnd::Later(_) => (200, None, success("{}")),
        ScriptedEnd::Status(status, wait) => (*status, wait.map(Duration::from_secs), String::new()),
        ScriptedEnd::Denied => (200, None, r#"{"success":false,"error":"no"}"#.to_owned()),
        _ => return failed(order.start, FailureCause::Network, "connection refused"),
    };
    let body = match (order.call.protocol, &act.end) {
        (undaunted_engine::workflow::HttpProtocol::Plain, ScriptedEnd::Success(output)) => output.clone(),
        _ => body,
    };
    let mut end = attempt_end(order, &HttpAnswer { status, retry_after, body: body.into_bytes() });
    end.took = act.takes;
    end
}

fn success(outputs: &str) -> String {
    let outputs = if outputs.is_empty() { "{}" } else { outputs };
    format!(r#"{{"success":true,"outputs":{outputs}}}"#)
}
