//! The catalog of a store: registered steps, and the list of flows.
//!
//! It is an aggregate with a journal of its own. What happens in a flow is in the journal of the flow's job.

mod record;
mod state;

pub use record::{CatalogEvent, CatalogRecord, FlowStatus};
pub use state::{Catalog, FlowEntry, FlowLifecycle, StepHealth};
