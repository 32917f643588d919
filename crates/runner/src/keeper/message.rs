//! Messages between engine and keeper, and their framing on a stream: a length, then so many bytes.
//!
//! Messages are CBOR, in which a field has a number. Only the first message each way has a format of its own: both
//! sides are the same binary, so another version means another release, and is refused. The bytes of the greeting
//! and of its refusal never change, so that each side can tell that the other one is of another version.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_engine::event::RecordError;
use undaunted_engine::event::codec::{put, read};

use crate::{CommandExit, RunningCommand, SpoolDamage, VanishedCommand, codec};

/// From the engine to the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum KeeperRequest {
    #[n(0)]
    Start(#[n(0)] CommandSpec),
    /// End this command and all processes it started.
    #[n(1)]
    Cancel {
        #[n(0)]
        id: u64,
    },
    #[n(2)]
    CancelAll {
        #[n(0)]
        signal: i32,
    },
    /// Its end is on record in the journal; the spool may forget it.
    #[n(3)]
    Forget {
        #[n(0)]
        id: u64,
    },
    /// All recovered fates are on record; from now on, an attempt that the spool does not know never began.
    #[n(4)]
    Trust,
    /// The last message of this engine.
    #[n(5)]
    Disconnect,
    /// Begin it as soon as fewer than so many commands run, while this engine is connected.
    #[n(6)]
    Reserve {
        #[n(0)]
        spec: CommandSpec,
        #[n(1)]
        slots: u32,
    },
    /// Refuse what is reserved and has not begun as cancelled.
    #[n(7)]
    Withdraw,
    /// What all later commands of this connection have in their environments.
    #[n(8)]
    Environment(
        #[n(0)]
        #[cbor(with = "codec")]
        Vec<(OsString, OsString)>,
    ),
}

/// From the keeper to the engine.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum KeeperReply {
    /// Answers the greeting. What the spool knows follows, then `Ready`.
    #[n(0)]
    Welcome {
        #[n(0)]
        pid: i32,
        #[n(1)]
        uncertain: bool,
        #[n(2)]
        damage: Option<SpoolDamage>,
    },
    /// Everything on record has been sent; later replies are new.
    #[n(1)]
    Ready,
    #[n(2)]
    Running(#[n(0)] RunningCommand),
    /// It has ended, and that is on record.
    #[n(3)]
    Exited(#[n(0)] CommandExit),
    #[n(4)]
    Vanished(#[n(0)] VanishedCommand),
    /// A request was refused; a start that was refused never began.
    #[n(5)]
    Refused {
        #[n(0)]
        id: Option<u64>,
        #[n(1)]
        why: KeeperRefusal,
    },
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperRefusal {
    #[error("the message is malformed")]
    #[n(0)]
    Malformed,
    #[error("the keeper is from another release")]
    #[n(1)]
    Version,
    #[error("another engine is connected to the keeper")]
    #[n(2)]
    Busy,
    /// It runs or has run.
    #[error("the attempt was started before")]
    #[n(3)]
    Known,
    #[error("the attempt was cancelled before it began")]
    #[n(4)]
    Cancelled,
    /// With the errno.
    #[error("cannot write the spool: {}", std::io::Error::from_raw_os_error(*.0))]
    #[n(5)]
    Spool(#[n(0)] i32),
}

/// For fuzzing: reads a message to the keeper and writes it again.
#[doc(hidden)]
pub fn reread_request(from: &[u8]) -> Result<Vec<u8>, RecordError> {
    read(from).map(|it: KeeperRequest| written(&it))
}

/// For fuzzing: the same for a message from the keeper.
#[doc(hidden)]
pub fn reread_reply(from: &[u8]) -> Result<Vec<u8>, RecordError> {
    read(from).map(|it: KeeperReply| written(&it))
}

fn written(message: &impl Encode<()>) -> Vec<u8> {
    let mut bytes = vec![];
    put(message, &mut bytes);
    bytes
}

/// In bytes. The arguments and environment of a command are a few mebibytes at most.
const LONGEST: usize = 16 << 20;

/// The first frame for a keeper that was started without a folder; it is followed by the greeting.
pub(crate) fn framed_folder(folder: &Path) -> Vec<u8> {
    let bytes = folder.as_os_str().as_bytes();
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length, bytes].concat()
}

/// None if the message is too long for any reader.
pub(crate) fn framed(message: &impl Encode<()>) -> Option<Vec<u8>> {
    // Enough for most messages without reallocation.
    let mut framed = Vec::with_capacity(128);
    framed.extend_from_slice(&[0; 4]);
    put(message, &mut framed);
    let (length, payload) = framed.split_first_chunk_mut()?;
    *length = u32::try_from(payload.len()).ok()?.to_le_bytes();
    (payload.len() <= LONGEST).then_some(framed)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeeperFrame {
    Message(Vec<u8>),
    /// No message has this length; the stream cannot be split into messages any more.
    TooLong,
    /// The other side has closed the stream, or died in the middle of a message.
    Closed,
}

pub(crate) fn next_frame(from: &mut impl Read) -> io::Result<KeeperFrame> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if is_close(&error) => return Ok(KeeperFrame::Closed),
        read => read?,
    }
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Ok(KeeperFrame::TooLong);
    }
    // Grows with what arrives: a length alone allocates nothing.
    let mut payload = vec![];
    let most = u64::try_from(length).unwrap_or(u64::MAX);
    match from.take(most).read_to_end(&mut payload) {
        Ok(read) if read == length => Ok(KeeperFrame::Message(payload)),
        Ok(_) => Ok(KeeperFrame::Closed),
        Err(error) if is_close(&error) => Ok(KeeperFrame::Closed),
        Err(error) => Err(error),
    }
}

/// Whether these bytes begin with a whole message.
pub(crate) fn holds_frame(bytes: &[u8]) -> bool {
    let Some((length, payload)) = bytes.split_first_chunk() else { return false };
    usize::try_from(u32::from_le_bytes(*length)).is_ok_and(|length| length <= payload.len())
}

/// For fuzzing: the messages of a stream, up to its end or to what is not a message.
#[doc(hidden)]
pub fn messages(mut from: impl Read) -> io::Result<Vec<Vec<u8>>> {
    let mut messages = vec![];
    while let KeeperFrame::Message(message) = next_frame(&mut from)? {
        messages.push(message);
    }
    Ok(messages)
}

fn is_close(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

pub(crate) const VERSION: u32 = 4;

const GREETING: u8 = 0;
const REFUSED: u8 = 5;
/// Reasons to refuse an engine; the index is the number on the wire.
const WHY: [KeeperRefusal; 3] = [KeeperRefusal::Malformed, KeeperRefusal::Version, KeeperRefusal::Busy];

/// The first message of an engine, framed.
pub(crate) fn greeting() -> [u8; 9] {
    let [a, b, c, d] = VERSION.to_le_bytes();
    [5, 0, 0, 0, GREETING, a, b, c, d]
}

#[doc(hidden)]
pub fn understood(greeting: &[u8]) -> Result<(), KeeperRefusal> {
    match greeting.split_first() {
        Some((&GREETING, version)) if version == VERSION.to_le_bytes() => Ok(()),
        Some((&GREETING, [_, _, _, _])) => Err(KeeperRefusal::Version),
        _ => Err(KeeperRefusal::Malformed),
    }
}
pub(crate) fn framed_refusal(why: KeeperRefusal) -> [u8; 11] {
    let number = (0..).zip(WHY).find(|(_, each)| *each == why).map_or(0, |(number, _)| number);
    [7, 0, 0, 0, REFUSED, 0, number, 0, 0, 0, 0]
}

/// Why an engine was refused, if these bytes are a refusal. CBOR of a reply never begins like this.
pub(crate) fn refusal(bytes: &[u8]) -> Option<KeeperRefusal> {
    match bytes {
        [REFUSED, 0, number, 0, 0, 0, 0] => WHY.get(usize::from(*number)).copied(),
        _ => None,
    }
}

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
    /// Added to the environment that all commands of an engine have; the last value of a variable counts.
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
    /// The values of secrets, which must not reach a file of the spool.
    #[n(9)]
    pub secrets: Vec<String>,
    /// The environment that all commands of its engine have; the keeper sets it.
    #[cbor(skip)]
    pub inherited: Arc<Vec<(OsString, OsString)>>,
}

impl CommandSpec {
    /// With an empty environment, no input, no limits and no secrets.
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
            secrets: vec![],
            inherited: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests;
