//! Completion rules that were met or missed, and results that arrived afterwards.

use minicbor::{Decode, Encode};
use undaunted_policy::{Completion, CompletionReason, Reason, Timestamp};

use super::codec;
use crate::id::{ItemId, StepId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CompletionReached {
    #[n(0)]
    pub step: StepId,
    #[n(1)]
    pub why: CompletionWhy,
    #[n(2)]
    pub success: bool,
    #[n(3)]
    pub completed: u64,
    /// Items that have reported and have not succeeded.
    #[n(4)]
    pub failed: u64,
    #[n(5)]
    pub target: u64,
    #[n(6)]
    pub min: u64,
    #[cbor(n(7), with = "codec::time")]
    pub deadline: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum CompletionWhy {
    #[n(0)]
    AllReported,
    #[n(1)]
    MinReached,
    #[n(2)]
    DeadlineExpired,
}

impl CompletionReached {
    pub const fn completion(&self) -> Completion {
        let completed = self.completed;
        Completion {
            success: self.success,
            reason: match self.why {
                CompletionWhy::AllReported => CompletionReason::AllReported,
                CompletionWhy::MinReached => CompletionReason::MinReached { completed, min: self.min },
                CompletionWhy::DeadlineExpired => CompletionReason::DeadlineExpired { completed },
            },
        }
    }

    /// Why items that have not reported are missing.
    pub const fn reason(&self) -> Reason {
        match self.why {
            CompletionWhy::AllReported | CompletionWhy::MinReached => Reason::Cancelled,
            CompletionWhy::DeadlineExpired => Reason::Deadline,
        }
    }
}

impl From<CompletionReason> for CompletionWhy {
    fn from(reason: CompletionReason) -> Self {
        match reason {
            CompletionReason::AllReported => Self::AllReported,
            CompletionReason::MinReached { .. } => Self::MinReached,
            CompletionReason::DeadlineExpired { .. } => Self::DeadlineExpired,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LateResult {
    #[n(0)]
    pub step: StepId,
    #[n(1)]
    pub index: u32,
    /// `None` if the item succeeded.
    #[cbor(n(2), with = "codec::maybe_reason", has_nil)]
    pub reason: Option<Reason>,
    /// Whether the result changes that of the job.
    #[n(3)]
    pub counted: bool,
}

impl LateResult {
    pub const fn item(&self) -> ItemId {
        self.step.item(self.index)
    }
}
