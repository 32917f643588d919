//! The submission of a job: its first event, which holds everything that a resume needs.

use std::time::Duration;

use serde_json::{Map, Value};
use undaunted_policy::spelling::WorkDefaults;

use super::codec;
use super::text::WorkflowText;
use crate::id::StepId;
use crate::stored::stored;
use crate::workflow::FlowGoals;

stored! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct JobSubmitted {
        pub job: String = 0,
        pub text: WorkflowText = 1,
        /// The file of the text: an absolute path, or a placeholder.
        pub file: String = 2,
        pub working_dir: String = 3,
        pub env: Vec<(String, String)> = 4,
        pub seed: u64 = 5,
        pub parallel: Vec<(StepId, u32)> = 6,
        /// Retries for the job, and for any one item. `None`: no pool.
        pub pool: Option<(u32, u32)> = 7,
        /// Default and maximum total, default and maximum per item. `None`: the documented ceilings.
        pub ceilings: Option<(u32, u32, u32, u32)> = 8,
        /// The release that wrote this; `None` if unknown.
        pub release: Option<String> = 9,
        /// The file that commands read as standard input. `None`: nothing.
        pub stdin: Option<String> = 10,
        /// How outputs are passed on to the caller. `None`: not at all.
        pub passing: Option<OutputPassing> = 11,
        /// `None`: the documented defaults.
        pub completion: Option<CompletionDefaults> = 12,
        /// `None`: no.
        pub late_results_count: Option<bool> = 13,
        /// The retries of flow steps that set none. `None`: the documented defaults.
        pub work: Option<WorkDefaults> = 14 with "codec::maybe_work" has_nil,
        /// The goals of a flow. `None`: the text states them.
        pub flow: Option<FlowRun> = 15,
        /// Makes the tokens of attempts unguessable. `None`: they follow from the job's name.
        pub token_key: Option<u64> = 16,
        /// Whether HTTP requests that name no breaker have one for their origin. `None` is from before
        /// breakers were opt-in, and means yes.
        pub origin_breakers: Option<bool> = 17,
    }

    /// For completion rules without a minimum or a deadline.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CompletionDefaults {
        pub min: u64 = 0,
        pub deadline: Duration = 1 with "codec::span",
    }

    /// How command outputs are passed on to the caller. All output is stored then.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OutputPassing {
        Through = 0,
        /// Item by item, in the order in which they end.
        Grouped = 1,
        /// Item by item, in input order.
        InOrder = 2,
        /// In the order in which items end, each line prefixed with the item's name.
        Tagged = 3,
        /// In input order, each line prefixed with the item's name.
        TaggedInOrder = 4,
    }

    /// The goals of a flow that was requested by its goals, not by a file.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct FlowRun {
        pub goals: Vec<String> = 0,
        /// A JSON object.
        pub init: String = 1,
        pub labels: Vec<(String, String)> = 2,
        pub parent: Option<ParentItem> = 3,
    }

    /// The item of another flow that waits for this one.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ParentItem {
        pub flow: String = 0,
        pub step: String = 1,
        pub token: String = 2,
        /// How many flows it is nested in.
        pub depth: u32 = 3,
    }
}

impl FlowRun {
    pub fn aim(&self) -> FlowGoals {
        let init: Map<String, Value> = serde_json::from_str(&self.init).unwrap_or_default();
        FlowGoals { goals: self.goals.clone(), init: init.into_iter().collect() }
    }
}
