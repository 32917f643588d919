//! Reaching the keeper of a spool: the living one, or one started now.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::frame::{Frame, framed, next_frame};
use super::message::{Refusal, Reply, Request, VERSION};
use super::serve::{LOCKED, READY};
use super::{Keeper, KeeperError};
use crate::bytes;
use crate::process::{Mark, VARIABLE, random_name};
use crate::spool::{Damage, Fate, Recovered, Spool};

/// How long to try: a keeper that is just leaving must be gone before the next can come.
const TRYING: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(5);
/// How long a living keeper may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

impl Keeper {
    /// Connects to the keeper of the spool in this folder; without one, starts `binary` with `args`
    /// and the folder as the last argument, which is to call [`main`](super::main).
    ///
    /// A keeper that is started first ends what the commands of a dead one left, which may take
    /// their grace.
    ///
    /// # Errors
    ///
    /// When the spool cannot be used, no keeper can be started, or it has another engine.
    pub fn start(
        binary: &Path,
        args: &[OsString],
        folder: &Path,
    ) -> Result<(Self, Recovered), KeeperError> {
        let spool = Spool::open(folder)?;
        let until = Instant::now().checked_add(TRYING);
        loop {
            let failed = match connect(&spool) {
                Ok((stream, pid, recovered)) => {
                    let keeper = Self::over(stream, spool, pid).map_err(KeeperError::Silent)?;
                    return Ok((keeper, recovered));
                }
                Err(KeeperError::Silent(error)) => error,
                Err(error) => return Err(error),
            };
            if until.is_some_and(|until| until <= Instant::now()) {
                return Err(KeeperError::Silent(failed));
            }
            if !launch(binary, args, &spool)? {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Starts a keeper and waits until it can be reached. False if the spool has one already.
fn launch(binary: &Path, args: &[OsString], spool: &Spool) -> Result<bool, KeeperError> {
    let start = |source| KeeperError::Start {
        program: binary.display().to_string(),
        source,
    };
    let complaints = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(spool.complaints())
        .map_err(start)?;
    let mark = Mark {
        keeper: random_name().map_err(start)?,
        id: None,
    };
    let mut child = Command::new(binary)
        .args(args)
        .arg(spool.folder())
        .env(VARIABLE, mark.after(std::env::var_os(VARIABLE).as_deref()))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(complaints)
        .spawn()
        .map_err(start)?;
    let mut said = String::new();
    let heard = match child.stdout.take() {
        Some(mut out) => out.read_to_string(&mut said),
        None => Ok(0),
    };
    heard.map_err(start)?;
    if said.is_empty() && child.wait().is_ok_and(|status| status.signal().is_some()) {
        // Somebody killed it before it could say anything; the next one may live.
        return Ok(false);
    }
    // It outlives us or dies before us; in the latter case somebody must take note.
    std::thread::spawn(move || child.wait());
    match said.trim() {
        READY => Ok(true),
        LOCKED => Ok(false),
        "" => Err(KeeperError::GaveUp {
            complaint: format!("it said nothing; see `{}`", spool.complaints().display()),
        }),
        said => Err(KeeperError::GaveUp {
            complaint: said.to_owned(),
        }),
    }
}

/// Connects, and hears what is known.
fn connect(spool: &Spool) -> Result<(UnixStream, i32, Recovered), KeeperError> {
    let mut stream = spool.connect().map_err(KeeperError::Silent)?;
    let hello = framed(&Request::Hello { version: VERSION }).unwrap_or_default();
    stream
        .set_read_timeout(Some(ANSWER))
        .and_then(|()| stream.write_all(&hello))
        .map_err(KeeperError::Silent)?;
    let mut recovered = Recovered::default();
    let mut keeper = 0;
    loop {
        match next_reply(&mut stream).map_err(KeeperError::Silent)? {
            Reply::Welcome {
                version: _,
                pid,
                uncertain,
                damage,
            } => {
                keeper = pid;
                recovered.uncertain = uncertain;
                recovered.damage = damage.map(|(offset, unread)| Damage { offset, unread });
            }
            Reply::Running(running) => {
                recovered.fates.insert(running.id, Fate::Running(running));
            }
            Reply::Exited(exited) => {
                recovered.fates.insert(exited.id, Fate::Exited(exited));
            }
            Reply::Vanished(vanished) => {
                let (id, fate) = (vanished.id, Fate::Vanished(Some(vanished)));
                recovered.fates.insert(id, fate);
            }
            Reply::Ready => break,
            Reply::Refused { why, .. } => return Err(why.into()),
        }
    }
    stream.set_read_timeout(None).map_err(KeeperError::Silent)?;
    Ok((stream, keeper, recovered))
}

/// The next thing a keeper says.
pub(crate) fn next_reply(stream: &mut impl Read) -> io::Result<Reply> {
    match next_frame(stream)? {
        Frame::Message(payload) => bytes::decode(&payload).map_err(io::Error::other),
        Frame::TooLong => Err(io::Error::other(Refusal::Malformed)),
        Frame::Closed => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
