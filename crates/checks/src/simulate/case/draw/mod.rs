//! Cases from a die.
//!
//! Times are whole milliseconds without a common measure, so that two things rarely happen at the
//! same instant: what then goes first is nobody's promise. Cases are small: a few items, a few
//! failures each, and nothing goes on for ever unless something ends it.

mod commands;
mod flows;
mod retries;
mod scripts;
mod shapes;
mod table;
