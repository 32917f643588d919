//! Floors: the minimum that the machine itself needs for the same work.

mod append;
mod spawn;

pub(crate) use append::{GROUP, append};
pub(crate) use spawn::spawn;
