//! The small language of `filter:`, `--where`, `sort_by:` and `distinct:`.
//!
//! Text in, a check of one JSON value out. Nothing here reads a file, knows a workflow or changes a
//! value. It is separate from `input` because dead letters are filtered too, long after they were read.

mod expression;
mod field_path;
mod lexer;
mod order;
mod parser;
mod sort_by;
mod syntax_error;
#[cfg(test)]
mod tests;

pub use expression::Filter;
pub use field_path::{FieldPath, Segment};
pub use sort_by::SortBy;
pub use syntax_error::SyntaxError;

pub(super) use field_path::follow;
pub(super) use lexer::quoted;
pub(super) use order::{compare, sorted_entries};
pub(super) use syntax_error::refuse_long;
