//! Completion rules that were met or missed, and results that arrived afterwards.

use undaunted_policy::{Completion, CompletionReason, Reason, Timestamp};

use super::codec;
use super::text::StoredText;
use crate::id::{ItemId, StepId};
use crate::stored::stored;

stored! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CompletionReached {
        pub step: StepId = 0,
        pub why: CompletionWhy = 1,
        pub success: bool = 2,
        pub completed: u64 = 3,
        /// Items that have reported and have not succeeded.
        pub failed: u64 = 4,
        pub target: u64 = 5,
        pub min: u64 = 6,
        pub deadline: Timestamp = 7 with "codec::time",
        /// Whether the rule could complete the step early. `None`: yes; earlier releases recorded no other
        /// completions.
        pub best_effort: Option<bool> = 8,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CompletionWhy {
        AllReported = 0,
        MinReached = 1,
        DeadlineExpired = 2,
    }
}

impl CompletionReached {
    pub fn is_best_effort(&self) -> bool {
        self.best_effort != Some(false)
    }

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

stored! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LateResult {
        pub step: StepId = 0,
        pub index: u32 = 1,
        /// `None` if the item succeeded.
        pub reason: Option<Reason> = 2 with "codec::maybe_reason" has_nil,
        /// Whether the result changes that of the job.
        pub counted: bool = 3,
        /// As JSON, if the result came by itself. `None`: it failed, or an attempt has recorded it.
        pub output: Option<String> = 4,
        /// Why a result that came by itself is a failure.
        pub error: Option<StoredText> = 5,
    }
}

impl LateResult {
    pub const fn item(&self) -> ItemId {
        self.step.item(self.index)
    }
}
