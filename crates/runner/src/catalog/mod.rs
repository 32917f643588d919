//! The catalog of a store: the registered steps, and the flows.
//!
//! It has no owner: every process with a [`CatalogHandle`] reads and writes it, and decides again when
//! another process has changed it meanwhile.

use shared::SharedCatalog;
use writer::CatalogTask;

mod journal;
mod shared;
mod steps;
#[cfg(test)]
mod tests;
mod writer;

pub use journal::{FAMILY, ID, activated, deactivated, records};
pub use shared::CatalogHandle;
pub(crate) use steps::{CheckedSteps, RegisteredStep};
