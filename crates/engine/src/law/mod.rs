//! Laws that hold for every job: may this record follow this state, and is this state consistent?
//!
//! Tests and `undaunted store check` ask; running a job does not pay for it. Nothing here repairs a job.

mod record;
mod state;
#[cfg(test)]
mod tests;

pub use record::violations_by_record;
pub use state::{LawViolation, violations_in_state};
