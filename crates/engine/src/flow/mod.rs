//! Flows: which steps may start, the arguments of their items, and the attributes that they set.
//!
//! Attributes connect the steps. A step starts when all required attributes are known and no running or
//! waiting step can still set an optional one. It is unreachable when no step can set a required one any
//! more. Nothing here changes a job: `decide` asks these functions and makes the events.

mod arguments;
mod available;
mod outputs;
mod predicate;
mod readiness;
mod select;

pub use arguments::AttributeValue;
pub(crate) use arguments::{items, predicate_arguments};
pub(crate) use available::AvailableSteps;
pub(crate) use outputs::outputs;
pub use predicate::Predicate;
pub(crate) use readiness::{Readiness, readiness};
pub use select::{StepSelection, select};
