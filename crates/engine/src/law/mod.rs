//! What is true of every job, whatever happens to it.
//!
//! Two questions: does a record go against what holds before it, and does a state add up? Asked by
//! tests and by whoever doubts a journal; a job that is run does not pay for it.

mod record;
mod state;
#[cfg(test)]
mod tests;
mod violation;

pub use record::broken_by;
pub use state::broken_in;
pub use violation::Violation;
