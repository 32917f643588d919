//! The instants of a job.

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use crate::event::codec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JobTimes {
    #[cbor(n(0), with = "codec::time")]
    pub submitted_at: Timestamp,
    #[cbor(n(1), with = "codec::time")]
    pub last_at: Timestamp,
    /// The last event that only the owner of a running job writes. Requests of operators are recorded at any
    /// time.
    #[cbor(n(2), with = "codec::time")]
    pub run_until: Timestamp,
    /// When this run began; zero for the first.
    #[cbor(n(3), with = "codec::time")]
    pub resumed_at: Timestamp,
    #[cbor(n(4), with = "codec::maybe_time", has_nil)]
    pub paused: Option<Timestamp>,
    /// Cleared by a redrive.
    #[cbor(n(5), with = "codec::maybe_time", has_nil)]
    pub ended_at: Option<Timestamp>,
}

impl JobTimes {
    pub(super) const fn submitted(at: Timestamp) -> Self {
        Self {
            submitted_at: at,
            last_at: at,
            run_until: at,
            resumed_at: Timestamp::ZERO,
            paused: None,
            ended_at: None,
        }
    }
}
