//! Connecting to the keeper of a spool, or starting one.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use undaunted_engine::event::codec::read;

use super::frame::{KeeperFrame, next_frame};
use super::greeting::{greeting, refusal};
use super::message::{KeeperRefusal, KeeperReply};
use super::{KeeperClient, KeeperError, KeeperEvent, LaunchedKeeper};
use crate::spool::{CommandFate, RecoveredSpool, Spool};

/// How long to try. A keeper that is about to exit must be gone before the next one can start.
const TRYING: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(5);
/// How long a living keeper may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

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
        let on_event = move |_: &Spool, event| sender.send(event).is_ok();
        let (mut keeper, recovered) = Self::reach(binary, args, folder, None, on_event)?;
        keeper.events = events;
        Ok((keeper, recovered))
    }

    /// As [`Self::start`], perhaps with a keeper that was launched before. `on_event` gets all events, until
    /// it returns false.
    pub(crate) fn reach(
        binary: &Path,
        args: &[OsString],
        folder: &Path,
        launched: Option<LaunchedKeeper>,
        on_event: impl Fn(&Spool, KeeperEvent) -> bool + Send + 'static,
    ) -> Result<(Self, RecoveredSpool), KeeperError> {
        let (spool, mut greeting) = match launched {
            Some(launched) => (launched.spool.clone(), launched.wait_for_greeting()?),
            None => (Spool::open(folder)?, None),
        };
        let until = Instant::now().checked_add(TRYING);
        loop {
            if let Some(greeting) = greeting {
                return Self::over(greeting, spool, on_event).map_err(KeeperError::Silent);
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
            greeting = LaunchedKeeper::of(binary, args, spool.clone())?.wait_for_greeting()?;
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
    let (pid, recovered) = read_recovered(&mut stream)?;
    let lasting = stream.get_ref().set_read_timeout(None);
    lasting.map_err(KeeperError::Silent)?;
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
