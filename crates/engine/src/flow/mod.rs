//! Flows: which steps may begin, what their items are given, and what their results come to.
//!
//! Steps are connected by attributes. A step begins when all it requires is there and nothing optional
//! can still come; it is unreachable when something it requires can no longer come.

mod arguments;
mod given;
mod outputs;
mod predicate;
mod readiness;
mod select;

pub(crate) use arguments::{items, seen};
pub use given::AttributeValue;
pub(crate) use outputs::outputs;
pub use predicate::Predicate;
pub(crate) use readiness::{Readiness, readiness};
pub use select::{StepSelection, select};
