//! What is recorded of a flow that was asked for by name of its goals, not by a file.

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};

use crate::workflow::Aim;

/// What a flow is to reach, where its text does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct FlowRun {
    /// The steps it has to reach.
    #[n(0)]
    pub goals: Vec<String>,
    /// The attributes it begins with: a JSON object.
    #[n(1)]
    pub init: String,
    /// Names to find it by.
    #[n(2)]
    pub labels: Vec<(String, String)>,
    /// Whose step it is, if it is one.
    #[n(3)]
    pub parent: Option<Parent>,
}

/// The item of another flow that waits for this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Parent {
    #[n(0)]
    pub flow: String,
    #[n(1)]
    pub step: String,
    /// The token of the item.
    #[n(2)]
    pub token: String,
    /// How many flows it is inside of.
    #[n(3)]
    pub depth: u32,
}

impl FlowRun {
    /// The same, to be planned.
    pub fn aim(&self) -> Aim {
        let init: Map<String, Value> = serde_json::from_str(&self.init).unwrap_or_default();
        Aim {
            goals: self.goals.clone(),
            init: init.into_iter().collect(),
        }
    }
}
