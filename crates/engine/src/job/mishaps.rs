//! What went wrong with a job as a whole.

use minicbor::{Decode, Encode};
use undaunted_policy::Reason;

use crate::event::{Text, codec};

/// What went wrong with a job so far.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Mishaps {
    /// Why nothing new was started any more, if it came to that.
    #[n(0)]
    #[cbor(with = "codec::maybe_reason", has_nil)]
    pub stopped: Option<Reason>,
    /// The first failure that counts.
    #[n(1)]
    pub failure: Option<Mishap>,
    /// The first command that stopped and was recovered by its handler.
    #[n(2)]
    pub recovered: Option<Mishap>,
}

/// A failure that ended a command or a step.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Mishap {
    /// Why it was not tried again.
    #[n(0)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    /// What people read about it.
    #[n(1)]
    pub error: Text,
}
