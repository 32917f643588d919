//! What engine and keeper say to each other.
//!
//! As CBOR, in which a field has a number. The engine speaks first, with a greeting of its own
//! (`greeting.rs`).

use minicbor::{Decode, Encode};
use undaunted_engine::event::RecordError;
use undaunted_engine::event::codec::{put, read};

use super::Spec;
use crate::spool::{Damage, Exited, RunningCommand, Vanished};

/// From the engine to the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Request {
    #[n(0)]
    Start(#[n(0)] Spec),
    /// End this command with all it started.
    #[n(1)]
    Cancel {
        #[n(0)]
        id: u64,
    },
    #[n(2)]
    CancelAll,
    /// Its end is on record; the spool need not know it any longer.
    #[n(3)]
    Forget {
        #[n(0)]
        id: u64,
    },
    /// All fates are on record; from now on, what the spool does not know never began.
    #[n(4)]
    Trust,
    /// Nothing more comes from this engine.
    #[n(5)]
    Goodbye,
}

/// From the keeper to the engine.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Reply {
    /// The answer to the greeting. What the spool knows follows, then `Ready`.
    #[n(0)]
    Welcome {
        #[n(0)]
        pid: i32,
        #[n(1)]
        uncertain: bool,
        #[n(2)]
        damage: Option<Damage>,
    },
    /// All that was known has been said; what follows is new.
    #[n(1)]
    Ready,
    #[n(2)]
    Running(#[n(0)] RunningCommand),
    /// It has ended, and that is on record.
    #[n(3)]
    Exited(#[n(0)] Exited),
    /// Nobody knows how it ended.
    #[n(4)]
    Vanished(#[n(0)] Vanished),
    /// A message was not obeyed; for a start that means it never began.
    #[n(5)]
    Refused {
        #[n(0)]
        id: Option<u64>,
        #[n(1)]
        why: Refusal,
    },
}

/// Why the keeper did not do as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The message makes no sense.
    #[error("the message is malformed")]
    #[n(0)]
    Malformed,
    /// The engine is of another version.
    #[error("the keeper speaks another version")]
    #[n(1)]
    Version,
    /// Another engine is connected.
    #[error("another engine is connected to the keeper")]
    #[n(2)]
    Busy,
    /// The attempt is known: it runs or has run.
    #[error("the attempt was started before")]
    #[n(3)]
    Known,
    /// It was cancelled before its process was made.
    #[error("the attempt was cancelled before it began")]
    #[n(4)]
    Cancelled,
    /// The spool cannot be written; the number is the system's error.
    #[error("the spool cannot be written: {}", std::io::Error::from_raw_os_error(*.0))]
    #[n(5)]
    Spool(#[n(0)] i32),
}

/// Reads a message to the keeper and writes it again. What it says is nobody's business: this is for
/// fuzzing.
#[doc(hidden)]
pub fn reread_request(from: &[u8]) -> Result<Vec<u8>, RecordError> {
    read(from).map(|it: Request| written(&it))
}

/// The same for a message from the keeper.
#[doc(hidden)]
pub fn reread_reply(from: &[u8]) -> Result<Vec<u8>, RecordError> {
    read(from).map(|it: Reply| written(&it))
}

fn written(message: &impl Encode<()>) -> Vec<u8> {
    let mut bytes = vec![];
    put(message, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests;
