//! The aim of a flow that was requested by its goals, not by a file.

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};

use crate::workflow::FlowGoals;

/// The aim of a flow whose text does not state one.
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
