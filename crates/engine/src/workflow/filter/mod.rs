//! The small language of `filter:`, `--where`, `sort_by:` and `distinct:`.
//!
//! Text in, something that can be asked about one JSON value out. Nothing here reads a file, knows
//! a workflow or changes a value, so the workflow, the dead letters and a test all ask the same
//! code. It stands apart from `input` because a dead letter is filtered too, and was read long ago.

mod cursor;
mod expression;
mod field_path;
mod lexer;
mod lookup;
mod number;
mod order;
mod parser;
mod predicate;
mod quoted;
mod sort_by;
mod syntax_error;
#[cfg(test)]
mod tests;
mod token;

pub use field_path::FieldPath;
pub use predicate::Filter;
pub use sort_by::SortBy;
pub use syntax_error::SyntaxError;

pub(crate) use order::{compare, sorted_entries};
pub(crate) use syntax_error::refuse_long;
