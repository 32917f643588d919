//! An attribute that is there.

use serde_json::Value;

/// The value of an attribute, and which step gave it; none for what the flow began with.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The value.
    pub value: Value,
    /// The step.
    pub step: Option<u32>,
}
