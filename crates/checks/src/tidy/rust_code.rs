//! Just enough of Rust's grammar to find definitions and where they end.
//!
//! Comments and literals are blanked out first; after that braces balance and a keyword is a
//! keyword, so plain scanning is exact enough. It is not a parser: macros are read as they are
//! written, and nothing is resolved. A real parser would be a dependency a hundred times the
//! size of the questions asked here.

mod items;
mod literals;
mod matches;

pub(crate) use items::{Definition, End, body_end, definitions, end, has_test, items_for_tests};
pub(crate) use literals::only_code;
pub(crate) use matches::matches;

/// Whether a character can stand inside a name.
pub(crate) fn in_name(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}
