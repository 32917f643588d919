//! Decisions: state, input and time in; events out.
//!
//! One file per input. Nothing here changes a job: an event becomes true when it has been recorded and
//! applied.

mod advance;
mod ended;
mod facts;
mod fail;
mod flow;
mod hold;
mod input;
mod items;
mod redrive;
mod resume;
mod start;
mod words;

pub use advance::{Reaction, advance, react};
pub use input::decide;
pub(crate) use resume::{expired, expired_in_words, left_at};
pub use words::of_cause as describe_cause;
