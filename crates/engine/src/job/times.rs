//! The instants of a job.

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use crate::event::codec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JobTimes {
    #[n(0)]
    #[cbor(with = "codec::time")]
    pub submitted_at: Timestamp,
    #[n(1)]
    #[cbor(with = "codec::time")]
    pub last_at: Timestamp,
    /// The last event that only an engine running the job writes. Requests of operators are recorded at any
    /// time.
    #[n(2)]
    #[cbor(with = "codec::time")]
    pub run_until: Timestamp,
    /// When this run began; zero for the first.
    #[n(3)]
    #[cbor(with = "codec::time")]
    pub resumed_at: Timestamp,
    #[n(4)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub paused: Option<Timestamp>,
    /// Cleared by a redrive.
    #[n(5)]
    #[cbor(with = "codec::maybe_time", has_nil)]
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
