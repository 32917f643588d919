//! The submission of a job: its first event, which holds everything that a resume needs.

use std::time::Duration;

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};
use undaunted_policy::spelling::WorkDefaults;

use super::codec;
use super::text::WorkflowText;
use crate::id::StepId;
use crate::workflow::FlowGoals;

#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct JobSubmitted {
    #[n(0)]
    pub job: String,
    #[n(1)]
    pub text: WorkflowText,
    /// The file of the text: an absolute path, or a placeholder.
    #[n(2)]
    pub file: String,
    #[n(3)]
    pub working_dir: String,
    #[n(4)]
    pub env: Vec<(String, String)>,
    #[n(5)]
    pub seed: u64,
    #[n(6)]
    pub parallel: Vec<(StepId, u32)>,
    /// Retries for the job, and for any one item. `None`: no pool.
    #[n(7)]
    pub pool: Option<(u32, u32)>,
    /// Default and maximum total, default and maximum per item. `None`: the documented ceilings.
    #[n(8)]
    pub ceilings: Option<(u32, u32, u32, u32)>,
    /// The release that wrote this; `None` if unknown.
    #[n(9)]
    pub release: Option<String>,
    /// The file that commands read as standard input. `None`: nothing.
    #[n(10)]
    pub stdin: Option<String>,
    /// How outputs are passed on to the caller. `None`: not at all.
    #[n(11)]
    pub passing: Option<OutputPassing>,
    /// `None`: the documented defaults.
    #[n(12)]
    pub completion: Option<CompletionDefaults>,
    /// `None`: no.
    #[n(13)]
    pub late_results_count: Option<bool>,
    /// The retries of flow steps that set none. `None`: the documented defaults.
    #[cbor(n(14), with = "codec::maybe_work", has_nil)]
    pub work: Option<WorkDefaults>,
    /// The goals of a flow. `None`: the text states them.
    #[n(15)]
    pub flow: Option<FlowRun>,
    /// Makes the tokens of attempts unguessable. `None`: they follow from the job's name.
    #[n(16)]
    pub token_key: Option<u64>,
    /// Whether HTTP requests that name no breaker have one for their origin. `None` is from before breakers
    /// were opt-in, and means yes.
    #[n(17)]
    pub origin_breakers: Option<bool>,
}

/// For completion rules without a minimum or a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CompletionDefaults {
    #[n(0)]
    pub min: u64,
    #[cbor(n(1), with = "codec::span")]
    pub deadline: Duration,
}

/// How command outputs are passed on to the caller. All output is stored then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum OutputPassing {
    #[n(0)]
    Through,
    /// Item by item, in the order in which they end.
    #[n(1)]
    Grouped,
    /// Item by item, in input order.
    #[n(2)]
    InOrder,
    /// In the order in which items end, each line prefixed with the item's name.
    #[n(3)]
    Tagged,
    /// In input order, each line prefixed with the item's name.
    #[n(4)]
    TaggedInOrder,
}

/// The goals of a flow that was requested by its goals, not by a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct FlowRun {
    #[n(0)]
    pub goals: Vec<String>,
    /// A JSON object.
    #[n(1)]
    pub init: String,
    #[n(2)]
    pub labels: Vec<(String, String)>,
    #[n(3)]
    pub parent: Option<ParentItem>,
}

/// The item of another flow that waits for this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ParentItem {
    #[n(0)]
    pub flow: String,
    #[n(1)]
    pub step: String,
    #[n(2)]
    pub token: String,
    /// How many flows it is nested in.
    #[n(3)]
    pub depth: u32,
}

impl FlowRun {
    pub fn aim(&self) -> FlowGoals {
        let init: Map<String, Value> = serde_json::from_str(&self.init).unwrap_or_default();
        FlowGoals { goals: self.goals.clone(), init: init.into_iter().collect() }
    }
}
