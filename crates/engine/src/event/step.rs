//! Events of steps.

use minicbor::{Decode, Encode};
use undaunted_policy::Reason;

use super::attempt::SpooledPart;
use super::codec;
use super::completion::CompletionReached;
use super::job::NewItem;
use super::text::StoredText;
use crate::id::{StartId, StepId};

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum StepEvent {
    #[n(2)]
    Started {
        #[n(0)]
        step: StepId,
        /// The start number of the input command, if there is one.
        #[n(1)]
        start: Option<StartId>,
    },
    /// May occur several times for one step.
    #[n(3)]
    ItemsRead {
        #[n(0)]
        step: StepId,
        #[n(1)]
        items: Vec<NewItem>,
        #[n(2)]
        last: bool,
    },
    #[n(4)]
    InputFailed {
        #[n(0)]
        step: StepId,
        #[cbor(n(1), with = "codec::reason")]
        reason: Reason,
        #[n(2)]
        error: StoredText,
        #[n(3)]
        stderr: Option<Box<SpooledPart>>,
    },
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
    #[n(38)]
    CompletionReached(#[n(0)] Box<CompletionReached>),
    /// The condition of the step does not hold.
    #[n(40)]
    Skipped {
        #[n(0)]
        step: StepId,
    },
    /// The step requires the attribute `missing`, which no step can set any more.
    #[n(41)]
    Unreachable {
        #[n(0)]
        step: StepId,
        #[n(1)]
        missing: String,
    },
    #[n(42)]
    AttributeSet {
        #[n(0)]
        step: StepId,
        #[n(1)]
        name: String,
        /// As JSON.
        #[n(2)]
        value: String,
    },
}

impl StepEvent {
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
