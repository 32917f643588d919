//! An attribute that is there.

use crate::id::StepId;
use serde_json::Value;

/// The value of an attribute, and which step gave it; none for what the flow began with.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    pub value: Value,
    pub step: Option<StepId>,
}
