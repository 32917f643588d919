//! Flows: which steps may begin, what their items are given, and what their results come to.
//!
//! Steps are connected by attributes. A step begins when everything it requires is there and nothing
//! it may take can still come; it is unreachable when something it requires can no longer come.

mod arguments;
mod given;
mod outputs;
mod predicate;
mod readiness;
mod select;

pub(crate) use arguments::{items, seen};
pub use given::Given;
pub(crate) use outputs::outputs;
pub(crate) use predicate::{check as check_predicate, holds};
pub(crate) use readiness::{Readiness, readiness};
pub use select::{StepSelection, select};
