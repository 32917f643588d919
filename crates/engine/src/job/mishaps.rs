//! What went wrong with a job as a whole.

use minicbor::{Decode, Encode};
use undaunted_policy::Reason;

use crate::event::{Text, codec};

#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Mishaps {
    #[n(0)]
    #[cbor(with = "codec::maybe_reason", has_nil)]
    pub stopped: Option<Reason>,
    #[n(1)]
    pub failure: Option<Mishap>,
    /// The first stopped command that its handler recovered.
    #[n(2)]
    pub recovered: Option<Mishap>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Mishap {
    #[n(0)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    #[n(1)]
    pub error: Text,
}
