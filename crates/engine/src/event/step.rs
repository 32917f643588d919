//! What is recorded of steps.

use minicbor::{Decode, Encode};
use undaunted_policy::Reason;

use super::attempt::Kept;
use super::codec;
use super::completion::Reached;
use super::job::NewItem;
use super::text::Text;
use crate::id::StepId;

/// Something that has happened to a step.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum StepEvent {
    /// A step may begin.
    #[n(2)]
    Started {
        #[n(0)]
        step: StepId,
        /// The number of the start of the command that gives its items, if one does.
        #[n(1)]
        start: Option<u64>,
    },
    /// Items of a map are known. There may be several of these; the last one says so.
    #[n(3)]
    ItemsRead {
        #[n(0)]
        step: StepId,
        #[n(1)]
        items: Vec<NewItem>,
        /// Whether there are no more.
        #[n(2)]
        last: bool,
    },
    /// The items of a map cannot be had.
    #[n(4)]
    InputFailed {
        #[n(0)]
        step: StepId,
        #[n(1)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
        #[n(2)]
        error: Text,
        /// Where the output of its command is kept.
        #[n(3)]
        stderr: Option<Kept>,
    },
    /// All items of a step are settled.
    #[n(17)]
    Completed {
        #[n(0)]
        step: StepId,
    },
    #[n(18)]
    Failed {
        #[n(0)]
        step: StepId,
    },
    /// A step is complete by its rule.
    #[n(38)]
    CompletionReached(#[n(0)] Box<Reached>),
    /// The condition of a step does not hold, and it is not done.
    #[n(40)]
    Skipped {
        #[n(0)]
        step: StepId,
    },
    /// A step can no longer begin, because this can no longer come.
    #[n(41)]
    Unreachable {
        #[n(0)]
        step: StepId,
        #[n(1)]
        missing: String,
    },
    /// A step has given an attribute.
    #[n(42)]
    AttributeSet {
        #[n(0)]
        step: StepId,
        #[n(1)]
        name: String,
        /// Its value, as JSON.
        #[n(2)]
        value: String,
    },
}

impl StepEvent {
    /// The word it has in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Started { .. } => "step_started",
            Self::ItemsRead { .. } => "items_read",
            Self::InputFailed { .. } => "input_failed",
            Self::Completed { .. } => "step_completed",
            Self::Failed { .. } => "step_failed",
            Self::CompletionReached(_) => "completion_reached",
            Self::Skipped { .. } => "step_skipped",
            Self::Unreachable { .. } => "step_unreachable",
            Self::AttributeSet { .. } => "attribute_set",
        }
    }

    pub const fn step(&self) -> StepId {
        match self {
            Self::Started { step, .. }
            | Self::ItemsRead { step, .. }
            | Self::InputFailed { step, .. }
            | Self::Completed { step }
            | Self::Failed { step }
            | Self::Skipped { step }
            | Self::Unreachable { step, .. }
            | Self::AttributeSet { step, .. } => *step,
            Self::CompletionReached(reached) => reached.step,
        }
    }
}
