//! What another system, or another job, knew of a command's retries.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::Timestamp;

use super::codec;
use super::text::Text;
use crate::id::CommandId;

/// A command of an item that was tried before this job was made.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ImportedCommand {
    /// What the item is called.
    #[n(0)]
    pub item: String,
    /// The command, by its place among all commands of the workflow.
    #[n(1)]
    pub command: CommandId,
    /// Attempts that were started.
    #[n(2)]
    pub attempts: u32,
    /// Retries that were scheduled; as many as attempts if one more may be made, one less if not.
    #[n(3)]
    pub retries: u32,
    /// Their delays, added up.
    #[n(4)]
    #[cbor(with = "codec::span")]
    pub spent: Duration,
    /// The last of these delays.
    #[n(5)]
    #[cbor(with = "codec::maybe_span", has_nil)]
    pub previous: Option<Duration>,
    /// When the retry that is pending falls due; without it, at once.
    #[n(6)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub due: Option<Timestamp>,
    /// When that retry is too late to be made after unplanned downtime.
    #[n(7)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub expires: Option<Timestamp>,
    /// What the last attempt said.
    #[n(8)]
    pub error: Option<Text>,
}
