//! What another system, or another job, knew of the retries of a command.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use super::codec;
use super::text::StoredText;
use crate::id::CommandId;

/// A command that was tried before the job was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ImportedCommand {
    #[n(0)]
    pub item: String,
    #[n(1)]
    pub command: CommandId,
    #[n(2)]
    pub attempts: u32,
    /// As many as attempts if one more may be made, else one less.
    #[n(3)]
    pub retries: u32,
    #[cbor(n(4), with = "codec::span")]
    pub spent: Duration,
    #[cbor(n(5), with = "codec::maybe_span", has_nil)]
    pub previous: Option<Duration>,
    /// When the pending retry falls due; `None` is at once.
    #[cbor(n(6), with = "codec::maybe_time", has_nil)]
    pub due: Option<Timestamp>,
    /// When that retry is too late after unplanned downtime.
    #[cbor(n(7), with = "codec::maybe_time", has_nil)]
    pub expires: Option<Timestamp>,
    #[n(8)]
    pub error: Option<StoredText>,
}
