//! Laws that hold for every job: does a record contradict the state before it, and is a state consistent?
//!
//! Checked by tests and by `undaunted store check`; running a job does not pay for it.

mod record;
mod state;
#[cfg(test)]
mod tests;
mod violation;

pub use record::violations_by_record;
pub use state::violations_in_state;
pub use violation::LawViolation;
