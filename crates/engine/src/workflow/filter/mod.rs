//! The small language of `filter:`, `--where`, `sort_by:` and `distinct:`.
//!
//! Text in, a check of one JSON value out. Nothing here reads a file, knows a workflow or changes a
//! value. It stands apart from `input` because dead letters are filtered too, long after they were
//! read.

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
