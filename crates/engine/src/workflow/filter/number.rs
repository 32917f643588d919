//! A number in a filter, read by the same parser as numbers in the input.
//!
//! Sharing the parser makes a number that is written the same way in both places the same value,
//! whatever the parser does with one that no float can hold.

use serde_json::Number;

use super::cursor::{Cursor, shown};
use super::syntax_error::SyntaxError;

pub(super) fn number(cursor: &mut Cursor<'_>) -> Result<Number, SyntaxError> {
    let start = cursor.at();
    // Everything that could be part of it is taken, so that `12abc` and `1-2` are refused as a whole
    // instead of being read as two tokens.
    let text = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '+' | '-' | '_'));
    serde_json::from_str(text).map_err(|_| {
        let message = format!("{} is not a number", shown(text));
        SyntaxError::new(cursor.since(start), message)
            .help("numbers are written as in JSON, text stands in quotes")
    })
}
