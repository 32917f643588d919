//! Messages between engine and keeper.
//!
//! As CBOR, in which a field has a number. The engine begins with a greeting in its own format
//! (`greeting.rs`).

use minicbor::{Decode, Encode};
use undaunted_engine::event::RecordError;
use undaunted_engine::event::codec::{put, read};

use super::CommandSpec;
use crate::spool::{CommandExit, RunningCommand, SpoolDamage, VanishedCommand};

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
    CancelAll,
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

/// Why the keeper has refused a request.
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

#[cfg(test)]
mod tests;
