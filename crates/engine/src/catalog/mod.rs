//! The catalog of a store: registered steps, and the list of flows.
//!
//! It has a journal of its own. What happened in a flow is in the journal of the flow's job.

mod known;
mod record;

pub use known::{Catalog, FlowEntry, FlowLifecycle, StepHealth};
pub use record::{CatalogEvent, CatalogRecord, FlowStatus};
