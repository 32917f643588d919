//! What follows from what a job is told: state, input and time in; facts out.
//!
//! One file per input. Nothing here changes a job: what is decided becomes true when it has been
//! recorded and applied.

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
pub use words::of_cause as cause_in_words;
