//! Why a filter, a path or an order was refused, and where.
//!
//! The place is a range of bytes in the given text, so that the caller can mark it in the file. Text of
//! unreasonable length is refused here for every part of the language, before it is parsed.

use std::ops::Range;

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

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Marks what is too much.
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
