//! The catalog: which steps were registered, and which flows there are.
//!
//! One for a store, with a journal of its own. It says of a flow only what a list of flows has to
//! say; what has happened in one is in the journal of its job.

mod known;
mod record;

pub use known::{Catalog, FlowEntry, FlowPlace, StepHealth};
pub use record::{CatalogEvent, CatalogRecord, FlowStatus};
