//! The catalog of a store: the registered steps, and the flows.
//!
//! It has no owner: every process with a [`CatalogHandle`] reads and writes it, and decides again when
//! another process has changed it meanwhile.

mod draft;
mod handle;
mod journal;
mod shared;
mod steps;
mod task;
#[cfg(test)]
mod tests;
mod writer;

pub use handle::CatalogHandle;
pub use journal::{FAMILY, ID, activated, deactivated, records};
pub(crate) use steps::{CheckedSteps, RegisteredStep};
