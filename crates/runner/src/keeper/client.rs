//! The engine's side of the keeper: connecting to one or starting it, requests and events.
//!
//! Used from one thread. It blocks only on the socket, and has no state: what happens is reported by events,
//! and what happened before is in the spool. No request fails because the keeper has died: that is an event,
//! and the next keeper reports the fates of all commands.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::{self, BufReader, ErrorKind, PipeReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use undaunted_engine::event::codec::read;

use super::message::{framed_folder, greeting, refusal};
use super::serve::LOCKED;
use super::{
    CommandSpec, KeeperFrame, KeeperRefusal, KeeperReply, KeeperRequest, framed, holds_frame, next_frame,
};
use crate::process::{VARIABLE, random_name};
use crate::spool::{SpoolHeader, complaints};
use crate::{
    CommandExit, CommandFate, ProcessMark, RecoveredSpool, RunningCommand, Spool, SpoolError, SpoolLog,
    failpoint,
};

#[derive(Debug)]
pub struct KeeperClient {
    stream: UnixStream,
    pub(super) events: Receiver<KeeperEvent>,
    spool: Spool,
    pid: i32,
    /// Requests that may wait for the next one.
    unsent: RefCell<Vec<u8>>,
    has_reserved: Cell<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperEvent {
    Began(RunningCommand),
    /// A command has ended. Its end is on record in the spool until it is forgotten.
    Exited(CommandExit),
    /// A request was refused; a start that was refused never began.
    Refused {
        id: Option<u64>,
        why: KeeperRefusal,
    },
    /// The keeper has died; this is the last event. The next keeper reports the fates of its commands.
    Gone,
}

/// Why an engine has no keeper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error("cannot start the keeper `{program}`")]
    Start { program: String, source: io::Error },
    /// The keeper started, and exited before it answered.
    #[error("the keeper exited: {complaint}")]
    GaveUp { complaint: String },
    /// There was no answer, or not one of a keeper.
    #[error("the keeper is not responding")]
    Silent(#[source] io::Error),
    #[error(
        "the keeper, process {pid}, has not answered for {ANSWER:?}; if it is stopped, continue it with `kill -CONT {pid}`"
    )]
    Hanging { pid: i32 },
    #[error(transparent)]
    Refused(#[from] KeeperRefusal),
    #[error("the arguments and environment of attempt {id} are too large")]
    TooLarge { id: u64 },
    #[error("cannot read `/proc`")]
    Processes(#[source] io::Error),
}

impl KeeperClient {
    fn of(stream: UnixStream, spool: Spool, pid: i32) -> Self {
        // The receiver gets nothing: events go to `on_events`.
        let (events, unsent, has_reserved) = (channel().1, RefCell::default(), Cell::default());
        Self { stream, events, spool, pid, unsent, has_reserved }
    }

    /// Passes all events of a keeper that has answered, with its spool, to `on_events`.
    pub(super) fn over(
        met: KeeperGreeting,
        spool: Spool,
        on_events: impl Fn(&Spool, Vec<KeeperEvent>) -> bool + Send + 'static,
    ) -> io::Result<(Self, RecoveredSpool)> {
        let KeeperGreeting { stream: mut reading, pid, recovered, child } = met;
        let event_spool = spool.clone();
        let keeper = Self::of(reading.get_ref().try_clone()?, spool, pid);
        read_events(child, move || pass_events(&mut reading, |events| on_events(&event_spool, events)))?;
        Ok((keeper, recovered))
    }

    /// Uses the keeper of a new job before it has answered: its spool knows of no attempt, so there is nothing to
    /// wait for, and it handles requests when it is ready. If it turns out otherwise, it counts as gone.
    fn ahead(
        launched: LaunchedKeeper,
        on_events: impl Fn(&Spool, Vec<KeeperEvent>) -> bool + Send + 'static,
    ) -> io::Result<(Self, RecoveredSpool)> {
        let LaunchedKeeper { spool, stream, child, .. } = launched;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        let keeper = Self::of(stream.try_clone()?, spool, pid);
        let spool = keeper.spool.clone();
        let mut stream = BufReader::new(stream);
        read_events(Some(child), move || {
            let recovered = read_recovered(&mut stream);
            if recovered.is_ok_and(|(_, recovered)| recovered == RecoveredSpool::default()) {
                pass_events(&mut stream, |events| on_events(&spool, events));
            } else {
                on_events(&spool, vec![KeeperEvent::Gone]);
            }
        })?;
        Ok((keeper, RecoveredSpool::default()))
    }

    /// Runs a command, whose start must be on record. A refusal is reported as an event; the only error is a
    /// command that is too large for a message.
    pub fn run(&self, spec: CommandSpec) -> Result<(), KeeperError> {
        let id = spec.id;
        let framed = framed(&KeeperRequest::Start(spec)).ok_or(KeeperError::TooLarge { id })?;
        self.write(&framed);
        Ok(())
    }

    /// What all commands that are run later have in their environments.
    pub fn set_environment(&self, env: Vec<(OsString, OsString)>) -> Result<(), KeeperError> {
        let framed = framed(&KeeperRequest::Environment(env)).ok_or(KeeperRefusal::Malformed)?;
        self.write(&framed);
        Ok(())
    }

    /// Runs a command, whose reservation must be on record, as soon as fewer than `slots` commands run and as long
    /// as this engine is connected. Sent with the next request, or by [`Self::flush`].
    pub fn reserve(&self, spec: CommandSpec, slots: u32) -> Result<(), KeeperError> {
        let id = spec.id;
        let request = KeeperRequest::Reserve { spec, slots };
        let framed = framed(&request).ok_or(KeeperError::TooLarge { id })?;
        self.unsent.borrow_mut().extend(framed);
        self.has_reserved.set(true);
        Ok(())
    }

    /// Sends what was reserved.
    pub fn flush(&self) {
        if self.has_reserved.get() {
            self.write(&[]);
        }
    }

    /// Every reserved command that has not begun is refused as cancelled.
    pub fn withdraw(&self) {
        self.send(&KeeperRequest::Withdraw);
    }

    /// Ends a command and all processes it started: TERM, the grace, KILL. Its end is reported as an event; a
    /// command that had not begun is refused as cancelled.
    pub fn cancel(&self, id: u64) {
        self.send(&KeeperRequest::Cancel { id });
    }

    /// Ends all commands, with this signal instead of TERM. KILL ends them without a grace.
    pub fn cancel_all(&self, signal: i32) {
        self.send(&KeeperRequest::CancelAll { signal });
    }

    /// Lets the spool forget an attempt whose end is on record in the journal. Its output stays where it is. Sent with
    /// the next request, since it only makes the log shorter.
    pub fn forget(&self, id: u64) {
        let framed = framed(&KeeperRequest::Forget { id }).unwrap_or_default();
        self.unsent.borrow_mut().extend(framed);
        if self.unsent.borrow().len() > MOST_UNSENT {
            self.write(&[]);
        }
    }

    /// All recovered fates are on record in the journal, so from now on an attempt that the spool does not
    /// know never began. Until then, a spool that is new, was damaged or is from another boot stays
    /// uncertain.
    pub fn trust(&self) {
        self.send(&KeeperRequest::Trust);
    }

    pub const fn events(&self) -> &Receiver<KeeperEvent> {
        &self.events
    }

    pub const fn pid(&self) -> i32 {
        self.pid
    }

    pub const fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Disconnects, and returns when the keeper has handled all requests. The keeper exits once its last
    /// command has ended; the spool keeps what is not forgotten for the next engine.
    pub fn disconnect(self) {
        self.send(&KeeperRequest::Disconnect);
        while self.events.recv().is_ok_and(|event| event != KeeperEvent::Gone) {}
    }

    fn send(&self, request: &KeeperRequest) {
        self.write(&framed(request).unwrap_or_default());
    }

    fn write(&self, framed: &[u8]) {
        failpoint::pass("told-before");
        self.has_reserved.set(false);
        let mut unsent = self.unsent.take();
        unsent.extend(framed);
        // If this fails, the reader reports [`KeeperEvent::Gone`].
        drop((&self.stream).write_all(&unsent));
        failpoint::pass("told-after");
    }
}

/// Reads events in a thread. If the keeper dies before this process, it has to be reaped.
fn read_events(child: Option<Child>, read: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let reader = std::thread::Builder::new().name("keeper".to_owned());
    let work = move || {
        read();
        child.map(|mut child| child.wait())
    };
    reader.spawn(work).map(drop)
}

/// Passes events until the last one, or until `on_events` returns false.
fn pass_events(reading: &mut BufReader<UnixStream>, on_events: impl Fn(Vec<KeeperEvent>) -> bool) {
    loop {
        let events = next_events(reading);
        let is_last = events.last() == Some(&KeeperEvent::Gone);
        if !on_events(events) || is_last {
            break;
        }
    }
}

/// The next event, and those that have arrived with it: what ends together is recorded together.
fn next_events(reading: &mut BufReader<UnixStream>) -> Vec<KeeperEvent> {
    let mut events = vec![next_event(reading)];
    while holds_frame(reading.buffer()) && events.last() != Some(&KeeperEvent::Gone) {
        events.push(next_event(reading));
    }
    events
}

fn next_event(reading: &mut impl Read) -> KeeperEvent {
    loop {
        return match next_reply(reading) {
            Ok(KeeperReply::Running(running)) => KeeperEvent::Began(running),
            Ok(KeeperReply::Exited(exited)) => KeeperEvent::Exited(exited),
            Ok(KeeperReply::Refused { id, why }) => KeeperEvent::Refused { id, why },
            Ok(KeeperReply::Welcome { .. } | KeeperReply::Vanished(_) | KeeperReply::Ready) => continue,
            Err(_) => KeeperEvent::Gone,
        };
    }
}

impl Drop for KeeperClient {
    fn drop(&mut self) {
        self.write(&[]);
        // Ends the reader's wait; an error means that the reader has ended.
        drop(self.stream.shutdown(Shutdown::Both));
    }
}

/// In bytes.
const MOST_UNSENT: usize = 4 << 10;
/// How long to try. A keeper that is about to exit must be gone before the next one can start.
const TRYING: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(5);
/// How long a living keeper may take to answer. One that takes longer is stopped or stuck.
const ANSWER: Duration = Duration::from_secs(5);

pub(super) struct KeeperGreeting {
    pub(super) stream: BufReader<UnixStream>,
    pub(super) pid: i32,
    pub(super) recovered: RecoveredSpool,
    /// Its process, if this process has started it.
    pub(super) child: Option<Child>,
}

impl KeeperClient {
    /// Connects to the keeper of the spool in this folder; without one, starts `binary` with `args`
    /// and the folder as the last argument, which is to call [`main`](super::main). A new keeper first
    /// ends what the commands of a dead one left, which may take their grace.
    pub fn start(
        binary: &Path,
        args: &[OsString],
        folder: &Path,
    ) -> Result<(Self, RecoveredSpool), KeeperError> {
        let (sender, events) = channel();
        let on_events = move |_: &Spool, events: Vec<KeeperEvent>| {
            events.into_iter().all(|event| sender.send(event).is_ok())
        };
        let (mut keeper, recovered) = Self::reach(binary, args, folder, None, on_events)?;
        keeper.events = events;
        Ok((keeper, recovered))
    }

    /// As [`Self::start`], perhaps with a keeper that was launched before. `on_events` gets all events, until
    /// it returns false.
    pub(crate) fn reach(
        binary: &Path,
        args: &[OsString],
        folder: &Path,
        launched: Option<LaunchedKeeper>,
        on_events: impl Fn(&Spool, Vec<KeeperEvent>) -> bool + Send + 'static,
    ) -> Result<(Self, RecoveredSpool), KeeperError> {
        if let Some(launched) = launched {
            return Self::ahead(launched, on_events).map_err(KeeperError::Silent);
        }
        let spool = Spool::open(folder)?;
        let mut greeting = None;
        let until = Instant::now().checked_add(TRYING);
        loop {
            if let Some(greeting) = greeting {
                return Self::over(greeting, spool, on_events).map_err(KeeperError::Silent);
            }
            let failed = match connect(&spool) {
                Err(KeeperError::Silent(error)) => error,
                connected => {
                    greeting = Some(connected?);
                    continue;
                }
            };
            if until.is_some_and(|until| until <= Instant::now()) {
                return Err(KeeperError::Silent(failed));
            }
            greeting = LaunchedKeeper::begin(binary, args, spool.clone())?.wait_for_greeting()?;
            if greeting.is_none() {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn connect(spool: &Spool) -> Result<KeeperGreeting, KeeperError> {
    let mut stream = spool.connect().map_err(KeeperError::Silent)?;
    stream
        .set_read_timeout(Some(ANSWER))
        .and_then(|()| stream.write_all(&greeting()))
        .map_err(KeeperError::Silent)?;
    let mut stream = BufReader::new(stream);
    let (pid, recovered) = read_recovered(&mut stream).map_err(|error| match error {
        KeeperError::Silent(silent)
            if matches!(silent.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
        {
            let keeper = socket_peercred(stream.get_ref());
            keeper.map_or(KeeperError::Silent(silent), |it| KeeperError::Hanging { pid: it.pid.as_raw_pid() })
        }
        error => error,
    })?;
    stream.get_ref().set_read_timeout(None).map_err(KeeperError::Silent)?;
    Ok(KeeperGreeting { stream, pid, recovered, child: None })
}

pub(super) fn read_recovered(stream: &mut impl Read) -> Result<(i32, RecoveredSpool), KeeperError> {
    let mut recovered = RecoveredSpool::default();
    let mut keeper = 0;
    loop {
        match next_reply(stream).map_err(KeeperError::Silent)? {
            KeeperReply::Welcome { pid, uncertain, damage } => {
                keeper = pid;
                recovered.uncertain = uncertain;
                recovered.damage = damage;
            }
            KeeperReply::Running(running) => {
                recovered.fates.insert(running.id, CommandFate::Running(running));
            }
            KeeperReply::Exited(exited) => {
                recovered.fates.insert(exited.id, CommandFate::Exited(exited));
            }
            KeeperReply::Vanished(vanished) => {
                let (id, fate) = (vanished.id, CommandFate::Vanished(Some(vanished)));
                recovered.fates.insert(id, fate);
            }
            KeeperReply::Ready => return Ok((keeper, recovered)),
            KeeperReply::Refused { why, .. } => return Err(why.into()),
        }
    }
}

pub(crate) fn next_reply(stream: &mut impl Read) -> io::Result<KeeperReply> {
    match next_frame(stream)? {
        KeeperFrame::Message(payload) => match refusal(&payload) {
            Some(why) => Ok(KeeperReply::Refused { id: None, why }),
            None => read(&payload).map_err(io::Error::other),
        },
        KeeperFrame::TooLong => Err(io::Error::other(KeeperRefusal::Malformed)),
        KeeperFrame::Closed => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A keeper without a spool, started ahead of its use, since starting it takes longer than most of what an engine
/// does meanwhile. It exits if this is dropped.
#[derive(Debug)]
pub struct WaitingKeeper {
    name: String,
    child: Child,
    stream: UnixStream,
    /// Its stdout, and its stderr until it has opened its spool.
    output: PipeReader,
}

impl WaitingKeeper {
    /// Starts `binary` with `args`, which is to call [`folder_from_engine`](super::folder_from_engine) and
    /// [`main`](super::main).
    pub fn start(binary: &Path, args: &[OsString]) -> Result<Self, KeeperError> {
        Self::with_folder(binary, args, None)
    }

    /// The folder is the last argument.
    fn with_folder(binary: &Path, args: &[OsString], folder: Option<&Path>) -> Result<Self, KeeperError> {
        let start = |source| KeeperError::Start { program: binary.display().to_string(), source };
        let name = random_name().map_err(start)?;
        let mark = ProcessMark { keeper: name.clone(), id: None };
        let (stream, theirs) = UnixStream::pair().map_err(start)?;
        let (output, written) = io::pipe().map_err(start)?;
        let child = Command::new(binary)
            .args(args)
            .args(folder)
            .env(VARIABLE, mark.after(std::env::var_os(VARIABLE).as_deref()))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(written.try_clone().map_err(start)?)
            .stderr(written)
            .spawn()
            .map_err(start)?;
        Ok(Self { name, child, stream, output })
    }

    /// It is not needed: it exits, and is reaped.
    pub fn dismiss(self) {
        let Self { mut child, stream, .. } = self;
        drop(stream);
        // Without a thread it is reaped when this process ends.
        let reaper = std::thread::Builder::new();
        drop(reaper.spawn(move || child.wait()));
    }

    /// Makes it the keeper of a job that is not submitted yet. Fails if the folder has a log of attempts.
    pub fn begin(self, folder: &Path) -> Result<LaunchedKeeper, KeeperError> {
        let spool = Spool::open(folder)?;
        let unusable = SpoolError::unusable(spool.folder());
        // Here and not by the keeper: whichever process is killed when, an attempt that is on record and not in
        // the log never began. Process 0 is none.
        let header = SpoolHeader::now(self.name.clone(), 0);
        header.and_then(|header| SpoolLog::begin(&spool, header)).map_err(unusable)?;
        let folder = framed_folder(spool.folder());
        Ok(self.greet(spool, folder))
    }

    fn greet(self, spool: Spool, mut bytes: Vec<u8>) -> LaunchedKeeper {
        let Self { child, mut stream, output, .. } = self;
        bytes.extend(greeting());
        // A keeper that does not receive the greeting reports why on its stdout.
        drop(stream.write_all(&bytes));
        LaunchedKeeper { spool, child, stream, output }
    }
}

/// A keeper that was started for a spool and has not answered yet. It exits if this is dropped.
#[derive(Debug)]
pub struct LaunchedKeeper {
    spool: Spool,
    child: Child,
    stream: UnixStream,
    output: PipeReader,
}

impl LaunchedKeeper {
    fn begin(binary: &Path, args: &[OsString], spool: Spool) -> Result<Self, KeeperError> {
        let waiting = WaitingKeeper::with_folder(binary, args, Some(spool.folder()))?;
        Ok(waiting.greet(spool, vec![]))
    }

    pub fn folder(&self) -> &Path {
        self.spool.folder()
    }

    /// Kills it. It has no command yet, so nothing else ends with it.
    pub fn end(mut self) {
        // An error means that it has exited.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Waits for the answer of the keeper. None if the spool has another keeper, or this one was killed
    /// before it could answer.
    pub(super) fn wait_for_greeting(mut self) -> Result<Option<KeeperGreeting>, KeeperError> {
        let mut stream = BufReader::new(self.stream);
        match read_recovered(&mut stream) {
            Ok((pid, recovered)) => {
                return Ok(Some(KeeperGreeting { stream, pid, recovered, child: Some(self.child) }));
            }
            Err(KeeperError::Silent(_)) => {}
            Err(error) => return Err(error),
        }
        // If the keeper is still alive, this makes it exit.
        drop(stream);
        let mut output = String::new();
        self.output.read_to_string(&mut output).map_err(KeeperError::Silent)?;
        let ended = self.child.wait();
        // Until its stderr is a file, an error is printed there as well, on the next line.
        match output.lines().next().unwrap_or_default().trim() {
            LOCKED => Ok(None),
            "" if ended.is_ok_and(|status| status.signal().is_some()) => Ok(None),
            "" => Err(KeeperError::GaveUp {
                complaint: format!("no error message; see `{}`", complaints(self.spool.folder()).display()),
            }),
            message => Err(KeeperError::GaveUp { complaint: message.to_owned() }),
        }
    }
}
