//! Why a filter, a path or an order was refused, and where.
//!
//! The position is a range of bytes in the given text, so that the caller can mark it in the file. Text
//! of unreasonable length is refused here for every part of the language, before it is parsed.

use std::ops::Range;

use super::field_path::continues_name;
use crate::workflow::cursor::Cursor;

/// The longest text of a filter, a path or an order, in characters.
const LONGEST: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// The bytes of the text that are wrong; empty where something is missing.
    pub range: Range<usize>,
    /// A lower-case clause.
    pub message: String,
    pub help: Option<String>,
}

impl SyntaxError {
    pub(crate) fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { range, message: message.into(), help: None }
    }

    /// Marks the next character.
    pub(super) fn expected(what: &str, cursor: &Cursor<'_>) -> Self {
        Self::new(cursor.next_range(), format!("expected {what}, found {}", next_word(cursor)))
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// What comes next, for a message: a whole word rather than its first letter.
pub(super) fn next_word(cursor: &Cursor<'_>) -> String {
    let mut ahead = *cursor;
    let word = ahead.take_while(continues_name);
    match cursor.peek() {
        None => "the end".to_owned(),
        Some(next) if word.is_empty() => quote(next.encode_utf8(&mut [0; 4])),
        Some(_) => quote(&word),
    }
}

/// A piece of the text inside a message: in backquotes, on one line and not too long.
pub(super) fn quote(piece: &str) -> String {
    const MOST: usize = 30;
    let piece = piece.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"");
    match piece.char_indices().nth(MOST) {
        None => format!("`{piece}`"),
        Some((most, _)) => format!("`{}…`", piece.get(..most).unwrap_or_default()),
    }
}

/// Marks what exceeds the limit.
pub(crate) fn refuse_long(text: &str) -> Result<(), SyntaxError> {
    match text.char_indices().nth(LONGEST) {
        None => Ok(()),
        Some((most, _)) => {
            Err(SyntaxError::new(most..text.len(), format!("the text is longer than {LONGEST} characters")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_characters_and_marks_the_rest() {
        assert_eq!(refuse_long(&"é".repeat(LONGEST)), Ok(()));
        let error = refuse_long(&"é".repeat(LONGEST + 2)).unwrap_err();
        assert_eq!(error.range, 20_000..20_004);
        assert_eq!(error.to_string(), "the text is longer than 10000 characters");
    }
}
