//! An item of a step, and the name it keeps.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct WorkItem {
    /// Unique in the step, and independent of the item's position in the input.
    pub identity: String,
    pub input: Value,
}
