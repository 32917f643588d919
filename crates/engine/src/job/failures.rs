//! What went wrong with a job as a whole.

use minicbor::{Decode, Encode};
use undaunted_policy::Reason;

use crate::event::{StoredText, codec};

#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct JobFailures {
    #[n(0)]
    #[cbor(with = "codec::maybe_reason", has_nil)]
    pub stopped: Option<Reason>,
    #[n(1)]
    pub failure: Option<JobFailure>,
    /// The first stopped command that its handler recovered.
    #[n(2)]
    pub recovered: Option<JobFailure>,
}

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct JobFailure {
    #[n(0)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    #[n(1)]
    pub error: StoredText,
}
