//! What is to be run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::bytes::{Bytes, Malformed};

/// A command to run, complete: the keeper adds nothing of its own but a mark in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The attempt. A keeper runs an id once; a second start of an id it knows is refused.
    pub id: u64,
    /// The program and its arguments. A name without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs.
    pub working_dir: PathBuf,
    /// The plain file it reads; nothing if none.
    pub stdin: Option<PathBuf>,
    /// After this it is ended with everything it started.
    pub timeout: Option<Duration>,
    /// The most bytes it may write, output and error output together. Looked at several times a
    /// second, so a fast writer gets past it before it is ended.
    pub output_limit: Option<u64>,
    /// How many bytes of the output are wanted as a whole; a mebibyte is kept in any case.
    pub capture: u64,
    /// How long its processes have between TERM and KILL.
    pub grace: Duration,
}

impl Spec {
    /// A command with nothing in its environment, no input and no limits.
    pub fn new(id: u64, argv: impl IntoIterator<Item: Into<OsString>>) -> Self {
        Self {
            id,
            argv: argv.into_iter().map(Into::into).collect(),
            env: vec![],
            working_dir: PathBuf::from("/"),
            stdin: None,
            timeout: None,
            output_limit: None,
            capture: 0,
            grace: Duration::from_secs(10),
        }
    }
}

impl Bytes for Spec {
    fn put(&self, to: &mut Vec<u8>) {
        self.id.put(to);
        self.argv.put(to);
        self.env.put(to);
        self.working_dir.put(to);
        self.stdin.put(to);
        self.timeout.put(to);
        self.output_limit.put(to);
        self.capture.put(to);
        self.grace.put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            id: Bytes::take(from)?,
            argv: Bytes::take(from)?,
            env: Bytes::take(from)?,
            working_dir: Bytes::take(from)?,
            stdin: Bytes::take(from)?,
            timeout: Bytes::take(from)?,
            output_limit: Bytes::take(from)?,
            capture: Bytes::take(from)?,
            grace: Bytes::take(from)?,
        })
    }
}
