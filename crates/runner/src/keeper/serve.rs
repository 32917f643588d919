//! The keeper's process, from start to exit, and its connections to engines.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, RwLock, Weak};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use undaunted_engine::event::codec::read;

use super::message::framed_refusal;
use super::recover::{RecoveredRun, recover_spool};
use super::shared::KeeperState;
use super::worker::reap;
use super::{
    KeeperError, KeeperFrame, KeeperLedger, KeeperRefusal, KeeperReply, KeeperRequest, KeeperShared, framed,
    next_frame, understood,
};
use crate::process::random_name;
use crate::spool::complaints;
use crate::{OutputSlots, ProcessMark, Spool, SpoolError, failpoint, locked, with_causes};

/// How long to wait for the first engine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Written to stdout when another keeper has the spool.
pub(crate) const LOCKED: &str = "locked";

/// Runs the keeper of the spool in this folder, for as long as it has an engine or a command.
///
/// To be called by a process that [`KeeperClient::start`](super::KeeperClient::start) has started, from its
/// main thread and before any other thread exists. Its stdin is a connection to the engine that started it;
/// on stdout it writes a line if it cannot start. It returns only if it cannot start; a keeper with nothing
/// to do exits.
pub fn main(folder: &Path) -> Result<Infallible, KeeperError> {
    let (shared, listener) = match begin(folder) {
        Ok(begun) => begun,
        Err(error) => {
            let complaint = match &error {
                KeeperError::Spool(SpoolError::Locked { .. }) => LOCKED.to_owned(),
                error => with_causes(error),
            };
            // The engine may have died; the error is returned as well.
            drop(print_line(&complaint));
            return Err(error);
        }
    };
    first_engine().and_then(|first| run_threads(&shared, listener, first)).map_err(KeeperError::Silent)?;
    reap(&shared)
}

/// The folder that the engine sends to a keeper that was started without one. None if stdin is no connection to an
/// engine. Exits if the engine needs no keeper.
pub fn folder_from_engine() -> Option<PathBuf> {
    let given = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    given.peer_addr().ok()?;
    match next_frame(&mut &given) {
        Ok(KeeperFrame::Message(folder)) => Some(OsString::from_vec(folder).into()),
        Ok(KeeperFrame::TooLong | KeeperFrame::Closed) | Err(_) => std::process::exit(0),
    }
}

/// Every running command needs a few open files, and the usual soft limit is low. If it cannot be raised,
/// fewer commands can run at a time.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

fn begin(folder: &Path) -> Result<(Arc<KeeperShared>, UnixListener), KeeperError> {
    abort_on_panic();
    allow_many_files();
    let system = KeeperError::Processes;
    // Fails only for the leader of a group, which no engine has started.
    rustix::process::setsid().map_err(|error| system(error.into()))?;
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|error| system(error.into()))?;
    let spool = Spool::open(folder)?;
    let unusable = SpoolError::unusable(spool.folder());
    write_complaints(&complaints(spool.folder())).map_err(unusable)?;
    let lock = spool.lock()?;
    let name = match ProcessMark::own() {
        // Passed in the environment, so that a child is recognized before it has become a command.
        Some(ProcessMark { keeper: name, id: None }) => name,
        _ => random_name().map_err(system)?,
    };
    let recovered = recover_spool(&spool, &lock, name.clone())?;
    let slots = OutputSlots::clear(&spool).map_err(unusable)?;
    let listener = spool.listen().map_err(unusable)?;
    let RecoveredRun { log, segments, damage } = recovered;
    let shared = Arc::new_cyclic(|shared| KeeperShared {
        own: Weak::clone(shared),
        most_workers: OnceLock::new(),
        name,
        pid: own.as_raw_pid(),
        ledger: Mutex::new(KeeperLedger::new(log, damage)),
        slots,
        segments,
        spawning: RwLock::default(),
        state: Mutex::new(KeeperState {
            patience: Instant::now().checked_add(PATIENCE),
            ..KeeperState::default()
        }),
        work: Condvar::new(),
        alarm: Condvar::new(),
        children: Condvar::new(),
        engine_left: Condvar::new(),
        spool,
        _lock: lock,
    });
    Ok((shared, listener))
}

/// From now on stderr is this file.
fn write_complaints(to: &Path) -> io::Result<()> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(to)?;
    Ok(rustix::stdio::dup2_stderr(file)?)
}

fn run_threads(
    shared: &Arc<KeeperShared>,
    listener: UnixListener,
    first: Option<UnixStream>,
) -> io::Result<()> {
    if let Some(first) = first {
        // Before any thread is started, since the engine that started this keeper waits for the answer.
        if let Some(connection) = EngineConnection::admit(shared, first) {
            let shared = Arc::clone(shared);
            thread("engine", move || connection.serve(&shared))?;
        }
        shared.end_patience();
    } else {
        shared.start_timer(&mut locked(&shared.state));
    }
    shared.add_worker(&mut locked(&shared.state))?;
    let listening = Arc::clone(shared);
    thread("engines", move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&listening);
            // Without a thread the connection is closed, and the engine retries.
            drop(thread("engine", move || {
                if let Some(connection) = EngineConnection::admit(&shared, stream) {
                    connection.serve(&shared);
                }
            }));
        }
    })?;
    // While the engine records the first start.
    shared.slots.prepare();
    Ok(())
}

pub(super) fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(run).map(drop)
}

/// Aborts on a panic: a keeper that has lost a thread would forget commands; a dead one is recovered.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}

fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", line.replace('\n', " "))?;
    out.flush()
}

/// The connection to the engine that started this keeper, if one has. Closes stdin and stdout, since
/// the engine waits for their end.
fn first_engine() -> io::Result<Option<UnixStream>> {
    let given = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Not a socket if a user has typed the command.
    let first = given.peer_addr().is_ok().then_some(given);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(first)
}

/// How long a new connection may take to send its greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How long a new engine waits until the keeper notices the death of the last one.
const HANDOVER: Duration = Duration::from_secs(2);
/// How long to delay the report that a command runs; often its end can be sent with it.
const NO_HURRY: Duration = Duration::from_millis(10);
/// How long ends of commands wait for others while the slots are busy, so that they share a commit.
const GATHERING: Duration = Duration::from_millis(2);
/// How many bytes are gathered into one write.
const GATHERED: usize = 64 << 10;

/// The connection to an engine that was admitted. One engine is served at a time. Everything a dead engine has sent
/// is handled before the next engine is admitted; otherwise a start in the socket's buffer could run after the next
/// engine was told that it never began.
struct EngineConnection {
    stream: UnixStream,
    replies: Receiver<KeeperReply>,
    /// It has been told what is known.
    is_greeted: bool,
}

impl EngineConnection {
    /// Admits an engine, and tells it what is known. None if it was refused.
    fn admit(shared: &KeeperShared, mut stream: UnixStream) -> Option<Self> {
        if let Err(why) = greet(shared, &stream) {
            // An error means that the engine has died.
            drop(stream.write_all(&framed_refusal(why)));
            return None;
        }
        let (sender, replies) = channel();
        let known = {
            let mut ledger = locked(&shared.ledger);
            let queued = locked(&shared.state).runs.keys().copied().collect();
            ledger.connect(sender, shared.pid, queued)
        };
        let known: Vec<u8> = known.iter().filter_map(framed).flatten().collect();
        let is_greeted = write(&mut stream, &known).is_ok();
        Some(Self { stream, replies, is_greeted })
    }

    /// Carries out requests until the engine disconnects.
    fn serve(self, shared: &KeeperShared) {
        let Self { stream, replies, is_greeted } = self;
        // Without a second handle nothing could be answered, so the connection is closed.
        if is_greeted
            && let Ok(writing) = stream.try_clone()
            && let Some(answering) = shared.own.upgrade()
            && thread("answers", move || answer(&answering, writing, &replies)).is_ok()
        {
            handle_requests(shared, stream);
        }
        shared.engine_gone();
    }
}

fn greet(shared: &KeeperShared, stream: &UnixStream) -> Result<(), KeeperRefusal> {
    let limited = stream.set_read_timeout(Some(GREETING));
    let mut reading = stream;
    let frame = next_frame(&mut reading);
    let (Ok(()), Ok(KeeperFrame::Message(payload))) = (limited, frame) else {
        return Err(KeeperRefusal::Malformed);
    };
    understood(&payload)?;
    if stream.set_read_timeout(None).is_err() || !shared.admit_engine(HANDOVER) {
        return Err(KeeperRefusal::Busy);
    }
    Ok(())
}

/// Carries out requests until the engine disconnects.
fn handle_requests(shared: &KeeperShared, stream: UnixStream) {
    let mut stream = BufReader::new(stream);
    while let Ok(frame) = next_frame(&mut stream) {
        let payload = match frame {
            KeeperFrame::Message(payload) => payload,
            KeeperFrame::TooLong => return shared.refuse(None, KeeperRefusal::Malformed),
            KeeperFrame::Closed => return,
        };
        match read(&payload) {
            Ok(KeeperRequest::Start(spec)) => shared.start(spec),
            Ok(KeeperRequest::Cancel { id }) => shared.cancel(id, Signal::TERM),
            Ok(KeeperRequest::CancelAll { signal }) => shared.cancel_all(signal),
            Ok(KeeperRequest::Forget { id }) => locked(&shared.ledger).forget(id),
            Ok(KeeperRequest::Trust) => locked(&shared.ledger).trust(),
            Ok(KeeperRequest::Reserve { spec, slots }) => shared.reserve(spec, slots),
            Ok(KeeperRequest::Withdraw) => shared.withdraw(),
            Ok(KeeperRequest::Environment(env)) => locked(&shared.state).env = Arc::new(env),
            Ok(KeeperRequest::Disconnect) => return,
            Err(_) => shared.refuse(None, KeeperRefusal::Malformed),
        }
    }
}

/// Writes replies until there are no more, or the engine has disconnected. Runs in its own thread, so that an
/// engine that does not read blocks nothing else.
fn answer(shared: &KeeperShared, mut stream: UnixStream, replies: &Receiver<KeeperReply>) {
    while let Ok(first) = replies.recv() {
        let now = Instant::now();
        let until = now.checked_add(NO_HURRY);
        let gathering = now.checked_add(GATHERING);
        let mut is_urgent = !matches!(first, KeeperReply::Running(_));
        let mut gathered = framed(&first).unwrap_or_default();
        while gathered.len() < GATHERED {
            let gathering = gathering.filter(|_| shared.slots_stay_busy());
            let until = if is_urgent { gathering } else { until };
            let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
            let rest = rest.unwrap_or_default();
            let Ok(next) = replies.recv_timeout(rest) else {
                break;
            };
            is_urgent |= !matches!(next, KeeperReply::Running(_));
            gathered.extend(framed(&next).unwrap_or_default());
        }
        if write(&mut stream, &gathered).is_err() {
            break;
        }
    }
    // Shuts down at once, since the reading thread holds another handle.
    drop(stream.shutdown(std::net::Shutdown::Both));
}

fn write(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    failpoint::pass("answer-before");
    stream.write_all(bytes)?;
    failpoint::pass("answer-after");
    Ok(())
}
