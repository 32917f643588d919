//! A thing to be done, and the name it keeps.

use serde_json::Value;

/// One item of a step: what it is, and what it is called in every event, list and command.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkItem {
    /// Its name. No other item of the step has the same one, and it does not depend on where in the
    /// input the item stands.
    pub identity: String,
    /// The item as it was read.
    pub input: Value,
}
