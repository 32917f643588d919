//! The progress of a running job on standard error: bars on a terminal, plain lines elsewhere.

mod display;
mod draw;
mod frame;
mod line;
mod sentences;
mod shared;
mod speed;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use display::{Display, Quietness};
#[cfg(test)]
pub(super) use sentences::Sentences;
