//! Starting a keeper, before anybody has something to say to it.
//!
//! Its process takes longer to begin than most things an engine does meanwhile, so the two are apart:
//! [`Launched::begin`] returns at once, and only who meets the keeper waits for it.

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
use super::start::{Met, hear_known};
use crate::process::{Mark, VARIABLE, random_name};
use crate::spool::Spool;

/// A keeper that was started. It goes if this is dropped.
#[derive(Debug)]
pub struct Launched {
    pub(super) spool: Spool,
    child: Child,
    stream: UnixStream,
}

impl Launched {
    /// Starts `binary` with `args` and the folder as the last argument, which is to call
    /// [`main`](super::main).
    ///
    /// # Errors
    ///
    /// When the spool cannot be used, or no process can be made.
    pub fn begin(binary: &Path, args: &[OsString], folder: &Path) -> Result<Self, KeeperError> {
        Self::of(binary, args, Spool::open(folder)?)
    }

    /// Where it keeps what it knows.
    pub fn folder(&self) -> &Path {
        self.spool.folder()
    }

    pub(super) fn of(binary: &Path, args: &[OsString], spool: Spool) -> Result<Self, KeeperError> {
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
        // Whoever does not hear it says so on its output.
        drop(stream.write_all(&greeting()));
        Ok(Self {
            spool,
            child,
            stream,
        })
    }

    /// Ends it. It was told nothing, so nothing of anybody's is ended with it.
    pub fn end(mut self) {
        // If it has gone there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Waits until it has answered. None if the spool has another keeper, or somebody killed this one
    /// before it could say anything.
    pub(super) fn meet(mut self) -> Result<Option<Met>, KeeperError> {
        let mut stream = BufReader::new(self.stream);
        match hear_known(&mut stream) {
            Ok((pid, recovered)) => {
                return Ok(Some(Met {
                    stream,
                    pid,
                    recovered,
                    child: Some(self.child),
                }));
            }
            Err(KeeperError::Silent(_)) => {}
            Err(error) => return Err(error),
        }
        // Should it live all the same, it is to go.
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
                complaint: format!(
                    "it said nothing; see `{}`",
                    self.spool.complaints().display()
                ),
            }),
            said => Err(KeeperError::GaveUp {
                complaint: said.to_owned(),
            }),
        }
    }
}
