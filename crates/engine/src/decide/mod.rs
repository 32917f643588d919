//! Decisions: state, input and time in; events out.
//!
//! [`decide`] answers one input, with one file per kind of input. [`advance()`] adds what follows from the
//! state alone. [`react`] runs both until nothing more follows, and applies the events on the way. Nothing
//! else here changes a job, and nothing reads a clock or a random source: draws come from the job's seed.

mod advance;
mod draft;
mod ended;
mod fail;
mod flow;
mod hold;
mod input;
mod inputs;
mod late;
mod redrive;
mod reserve;
mod resume;
mod start;
mod update;
mod words;

pub use advance::{Reaction, advance, react, react_into};
pub use input::decide;
pub(crate) use resume::{expired, expired_in_words, left_at};
pub use words::describe_cause;
