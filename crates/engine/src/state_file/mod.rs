//! The retries of a job as another system writes them down: `RetryCheckpointState`.
//!
//! The format is foreign, so it is read at this border only: [`shape`] mirrors the file, [`export`]
//! fills it from a job, and [`import`] turns it into an event for a new job or says what does not fit.
//! `docs/json.md` lists what one of the two formats lacks.

mod exporting;
mod importing;
pub mod shape;

pub use exporting::export;
pub use importing::{ImportError, ImportedState, import};
