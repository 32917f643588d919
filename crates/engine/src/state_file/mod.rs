//! The retry state of a job in the format of another system, `RetryCheckpointState`.
//!
//! Only this module knows the foreign format: [`shape`] mirrors the file, [`export`] makes it from a job, and
//! [`import`] turns it into an event for a new job or refuses it. `docs/json.md` lists the differences.

mod breakers;
mod exporting;
mod importing;
mod past;
pub mod shape;
mod successes;

pub use breakers::ImportedBreaker;
pub use exporting::export;
pub use importing::{ImportError, ImportedState, import};
pub use past::ExportedPast;
