//! The value of an attribute, and the step that gave it.

use crate::id::StepId;
use serde_json::Value;

/// The value of an attribute and the step that gave it; `None` if the flow began with it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeValue {
    pub value: Value,
    pub step: Option<StepId>,
}
