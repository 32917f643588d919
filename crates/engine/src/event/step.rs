//! Events of steps.

use undaunted_policy::Reason;

use super::attempt::SpooledPart;
use super::codec;
use super::completion::CompletionReached;
use super::job::NewItem;
use super::text::StoredText;
use crate::id::{StartId, StepId};
use crate::stored::stored;

stored! {
    #[derive(Clone, Debug, PartialEq)]
    pub enum StepEvent {
        Started {
            step: StepId = 0,
            /// The start number of the input command, if there is one.
            start: Option<StartId> = 1,
        } = 2 => "step_started",
        /// May occur several times for one step.
        ItemsRead {
            step: StepId = 0,
            items: Vec<NewItem> = 1,
            last: bool = 2,
            /// What the user should know about the input. Only in the last one.
            warning: Option<String> = 3,
        } = 3 => "items_read",
        InputFailed {
            step: StepId = 0,
            reason: Reason = 1 with "codec::reason",
            error: StoredText = 2,
            stderr: Option<Box<SpooledPart>> = 3,
        } = 4 => "input_failed",
        Completed { step: StepId = 0 } = 17 => "step_completed",
        Failed { step: StepId = 0 } = 18 => "step_failed",
        CompletionReached(Box<CompletionReached> = 0) = 38 => "completion_reached",
        /// The condition of the step does not hold.
        Skipped { step: StepId = 0 } = 40 => "step_skipped",
        /// The step requires the attribute `missing`, which no step can set any more.
        Unreachable { step: StepId = 0, missing: String = 1 } = 41 => "step_unreachable",
        AttributeSet {
            step: StepId = 0,
            name: String = 1,
            /// As JSON.
            value: String = 2,
            /// Set if the attribute has a value already. That value stays, and this one is not used.
            unused: Option<bool> = 3,
        } = 42 => "attribute_set",
    }
}

impl StepEvent {
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
