//! A job while it runs: bars on a terminal, plain lines elsewhere, on standard error.

mod board;
mod display;
mod draw;
mod line;
mod quietness;
mod sentences;
mod shared;
mod speed;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use display::Display;
pub(crate) use quietness::Quietness;
