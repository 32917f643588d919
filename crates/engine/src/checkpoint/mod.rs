//! The retries of a job as another system writes them down: `RetryCheckpointState`.
//!
//! The shape is not ours, so it is read at this border only: [`shape`] is what stands in the file,
//! [`export`] fills it from a job, and [`import`] turns it into an event for a new one, or says what
//! does not fit. What is said in no file and has no place in ours is in `docs/json.md`.

mod exporting;
mod importing;
pub mod shape;

pub use exporting::export;
pub use importing::{ImportError, Imported, import};
