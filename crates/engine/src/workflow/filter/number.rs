//! A number in a filter, read by the same parser as numbers in the input.
//!
//! Sharing the parser is the point: a number written the same way in both places is the same
//! value, whatever that parser does with one that no float can hold.

use serde_json::Number;

use super::cursor::{Cursor, shown};
use super::syntax_error::SyntaxError;

/// Reads the number, or what was meant as one, that comes next.
pub(super) fn number(cursor: &mut Cursor<'_>) -> Result<Number, SyntaxError> {
    let start = cursor.at();
    // Everything that could be meant as part of it is taken, so that `12abc` and `1-2` are
    // refused as a whole instead of falling apart into two things.
    let text = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '+' | '-' | '_'));
    serde_json::from_str(text).map_err(|_| {
        SyntaxError::new(
            cursor.since(start),
            format!("{} is not a number", shown(text)),
        )
        .help("numbers are written as in JSON, text stands in quotes")
    })
}
