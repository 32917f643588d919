//! Starting a keeper ahead of its first use.
//!
//! The start of its process takes longer than most things an engine does meanwhile, so
//! [`LaunchedKeeper::begin`] returns at once, and only [`LaunchedKeeper::meet`] waits.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::KeeperError;
use super::greeting::greeting;
use super::serve::LOCKED;
use super::start::{KeeperGreeting, hear_known};
use crate::process::{ProcessMark, VARIABLE, random_name};
use crate::spool::Spool;

/// A keeper that was started. It exits if this is dropped.
#[derive(Debug)]
pub struct LaunchedKeeper {
    pub(super) spool: Spool,
    child: Child,
    stream: UnixStream,
}

impl LaunchedKeeper {
    /// Starts `binary` with `args` and the folder as the last argument, which is to call
    /// [`main`](super::main).
    pub fn begin(binary: &Path, args: &[OsString], folder: &Path) -> Result<Self, KeeperError> {
        Self::of(binary, args, Spool::open(folder)?)
    }

    pub fn folder(&self) -> &Path {
        self.spool.folder()
    }

    pub(super) fn of(binary: &Path, args: &[OsString], spool: Spool) -> Result<Self, KeeperError> {
        let start = |source| KeeperError::Start { program: binary.display().to_string(), source };
        let complaints = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(spool.complaints())
            .map_err(start)?;
        let mark = ProcessMark { keeper: random_name().map_err(start)?, id: None };
        let (mut stream, theirs) = UnixStream::pair().map_err(start)?;
        let child = Command::new(binary)
            .args(args)
            .arg(spool.folder())
            .env(VARIABLE, mark.after(std::env::var_os(VARIABLE).as_deref()))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(start)?;
        // A keeper that does not get it says why on its stdout.
        drop(stream.write_all(&greeting()));
        Ok(Self { spool, child, stream })
    }

    /// Kills it. It has no command yet, so nothing else ends with it.
    pub fn end(mut self) {
        // An error means that it has gone.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Waits for its answer. None if the spool has another keeper, or this one was killed before it could
    /// answer.
    pub(super) fn meet(mut self) -> Result<Option<KeeperGreeting>, KeeperError> {
        let mut stream = BufReader::new(self.stream);
        match hear_known(&mut stream) {
            Ok((pid, recovered)) => {
                return Ok(Some(KeeperGreeting { stream, pid, recovered, child: Some(self.child) }));
            }
            Err(KeeperError::Silent(_)) => {}
            Err(error) => return Err(error),
        }
        // Should it live all the same, this makes it exit.
        drop(stream);
        let mut said = String::new();
        if let Some(mut out) = self.child.stdout.take() {
            out.read_to_string(&mut said).map_err(KeeperError::Silent)?;
        }
        let ended = self.child.wait();
        match said.trim() {
            LOCKED => Ok(None),
            "" if ended.is_ok_and(|status| status.signal().is_some()) => Ok(None),
            "" => Err(KeeperError::GaveUp {
                complaint: format!("it said nothing; see `{}`", self.spool.complaints().display()),
            }),
            said => Err(KeeperError::GaveUp { complaint: said.to_owned() }),
        }
    }
}
