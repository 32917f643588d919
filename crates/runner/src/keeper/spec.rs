//! The specification of a command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use minicbor::{Decode, Encode};

use crate::codec;

/// A command to run. The keeper adds nothing but a mark in the environment.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CommandSpec {
    /// The attempt. A keeper runs an id once, and refuses a second start.
    #[n(0)]
    pub id: u64,
    /// A program without a slash is looked up in the `PATH` of `env`.
    #[n(1)]
    #[cbor(with = "codec")]
    pub argv: Vec<OsString>,
    #[n(2)]
    #[cbor(with = "codec")]
    pub env: Vec<(OsString, OsString)>,
    #[n(3)]
    #[cbor(with = "codec")]
    pub working_dir: PathBuf,
    /// A plain file; without one the input is empty.
    #[n(4)]
    #[cbor(with = "codec")]
    pub stdin: Option<PathBuf>,
    /// After this time it is ended, with all processes it started.
    #[n(5)]
    #[cbor(with = "codec")]
    pub timeout: Option<Duration>,
    /// The most bytes it may write, output and error output together. Polled, so a fast writer may exceed it
    /// before it is ended.
    #[n(6)]
    pub output_limit: Option<u64>,
    /// How many bytes from the beginning of the output to keep; at least a mebibyte is kept.
    #[n(7)]
    pub capture: u64,
    /// The time between TERM and KILL.
    #[n(8)]
    #[cbor(with = "codec")]
    pub grace: Duration,
}

impl CommandSpec {
    /// With an empty environment, no input and no limits.
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
