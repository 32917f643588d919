//! The least that the machine itself needs for the same thing.

mod append;
mod spawn;

pub(crate) use append::{GROUP, append};
pub(crate) use spawn::spawn;
