//! Starting a keeper ahead of its first use.
//!
//! Starting its process takes longer than most of what an engine does meanwhile, so [`LaunchedKeeper::begin`]
//! returns at once, and only [`LaunchedKeeper::wait_for_greeting`] waits.

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
use super::start::{KeeperGreeting, read_recovered};
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
        // A keeper that does not receive the greeting reports why on its stdout.
        drop(stream.write_all(&greeting()));
        Ok(Self { spool, child, stream })
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
        if let Some(mut out) = self.child.stdout.take() {
            out.read_to_string(&mut output).map_err(KeeperError::Silent)?;
        }
        let ended = self.child.wait();
        match output.trim() {
            LOCKED => Ok(None),
            "" if ended.is_ok_and(|status| status.signal().is_some()) => Ok(None),
            "" => Err(KeeperError::GaveUp {
                complaint: format!("no error message; see `{}`", self.spool.complaints().display()),
            }),
            message => Err(KeeperError::GaveUp { complaint: message.to_owned() }),
        }
    }
}
