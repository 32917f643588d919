//! What engine and keeper say to each other.
//!
//! Data and its bytes. The engine speaks first, with the version; both sides are the same binary, so
//! another version means a keeper of another release, and is refused rather than guessed at.

use super::Spec;
use crate::bytes::{self, Bytes, Malformed, take_tag};
use crate::spool::{Exited, Running, Vanished};

/// The version of the messages.
pub(crate) const VERSION: u32 = 1;

/// From the engine to the keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The first message of every connection.
    Hello { version: u32 },
    /// Run this.
    Start(Spec),
    /// End this command with all it started.
    Cancel { id: u64 },
    /// End every command.
    CancelAll,
    /// Its end is on record; the spool need not know it any longer.
    Forget { id: u64 },
    /// All fates are on record; from now on, what the spool does not know never began.
    Trust,
    /// Nothing more comes from this engine.
    Goodbye,
}

/// From the keeper to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The answer to `Hello`. What the spool knows follows, then `Ready`.
    Welcome {
        version: u32,
        pid: i32,
        uncertain: bool,
        /// Offset and unread bytes of a damaged log.
        damage: Option<(u64, u64)>,
    },
    /// All that was known has been said; what follows is new.
    Ready,
    /// This command runs.
    Running(Running),
    /// It has ended, and that is on record.
    Exited(Exited),
    /// Nobody knows how it ended.
    Vanished(Vanished),
    /// A message was not obeyed; for a start that means it never began.
    Refused { id: Option<u64>, why: Refusal },
}

/// Why the keeper did not do as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The message makes no sense.
    #[error("the message is malformed")]
    Malformed,
    /// The message is of another version, or the first was not a greeting.
    #[error("the keeper speaks another version")]
    Version,
    /// Another engine is connected.
    #[error("another engine is connected to the keeper")]
    Busy,
    /// The attempt is known: it runs or has run.
    #[error("the attempt was started before")]
    Known,
    /// It was cancelled before its process was made.
    #[error("the attempt was cancelled before it began")]
    Cancelled,
    /// The spool cannot be written; the number is the system's error.
    #[error("the spool cannot be written: {}", std::io::Error::from_raw_os_error(*.0))]
    Spool(i32),
}

/// Reads a message to the keeper and writes it again. What it says is nobody's business: this is for
/// fuzzing.
///
/// # Errors
///
/// When the bytes are no message.
#[doc(hidden)]
pub fn reread_request(from: &[u8]) -> Result<Vec<u8>, Malformed> {
    bytes::decode::<Request>(from).map(|it| bytes::encode(&it))
}

/// The same for a message from the keeper.
///
/// # Errors
///
/// When the bytes are no message.
#[doc(hidden)]
pub fn reread_reply(from: &[u8]) -> Result<Vec<u8>, Malformed> {
    bytes::decode::<Reply>(from).map(|it| bytes::encode(&it))
}

impl Bytes for Request {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Hello { version } => (0_u8, *version).put(to),
            Self::Start(spec) => {
                to.push(1);
                spec.put(to);
            }
            Self::Cancel { id } => (2_u8, *id).put(to),
            Self::CancelAll => to.push(3),
            Self::Forget { id } => (4_u8, *id).put(to),
            Self::Trust => to.push(5),
            Self::Goodbye => to.push(6),
        }
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(match take_tag(from)? {
            0 => Self::Hello {
                version: Bytes::take(from)?,
            },
            1 => Self::Start(Bytes::take(from)?),
            2 => Self::Cancel {
                id: Bytes::take(from)?,
            },
            3 => Self::CancelAll,
            4 => Self::Forget {
                id: Bytes::take(from)?,
            },
            5 => Self::Trust,
            6 => Self::Goodbye,
            _ => return Err(Malformed("an unknown request")),
        })
    }
}

impl Bytes for Reply {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Welcome {
                version,
                pid,
                uncertain,
                damage,
            } => {
                (0_u8, *version).put(to);
                pid.put(to);
                u8::from(*uncertain).put(to);
                damage.put(to);
            }
            Self::Ready => to.push(1),
            Self::Running(running) => {
                to.push(2);
                running.put(to);
            }
            Self::Exited(exited) => {
                to.push(3);
                exited.put(to);
            }
            Self::Vanished(vanished) => {
                to.push(4);
                vanished.put(to);
            }
            Self::Refused { id, why } => {
                to.push(5);
                id.put(to);
                why.put(to);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(match take_tag(from)? {
            0 => Self::Welcome {
                version: Bytes::take(from)?,
                pid: Bytes::take(from)?,
                uncertain: take_tag(from)? != 0,
                damage: Bytes::take(from)?,
            },
            1 => Self::Ready,
            2 => Self::Running(Bytes::take(from)?),
            3 => Self::Exited(Bytes::take(from)?),
            4 => Self::Vanished(Bytes::take(from)?),
            5 => Self::Refused {
                id: Bytes::take(from)?,
                why: Bytes::take(from)?,
            },
            _ => return Err(Malformed("an unknown reply")),
        })
    }
}

impl Bytes for Refusal {
    fn put(&self, to: &mut Vec<u8>) {
        let (tag, errno) = match self {
            Self::Malformed => (0_u8, 0),
            Self::Version => (1, 0),
            Self::Busy => (2, 0),
            Self::Known => (3, 0),
            Self::Cancelled => (4, 0),
            Self::Spool(errno) => (5, *errno),
        };
        (tag, errno).put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        let (tag, errno) = <(u8, i32)>::take(from)?;
        Ok(match tag {
            0 => Self::Malformed,
            1 => Self::Version,
            2 => Self::Busy,
            3 => Self::Known,
            4 => Self::Cancelled,
            5 => Self::Spool(errno),
            _ => return Err(Malformed("an unknown refusal")),
        })
    }
}

impl Bytes for Running {
    fn put(&self, to: &mut Vec<u8>) {
        self.id.put(to);
        self.pid.put(to);
        self.slot.put(to);
        self.began.put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self {
            id: Bytes::take(from)?,
            pid: Bytes::take(from)?,
            slot: Bytes::take(from)?,
            began: Bytes::take(from)?,
        })
    }
}

#[cfg(test)]
mod tests;
