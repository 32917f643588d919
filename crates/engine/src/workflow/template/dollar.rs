//! What a `$` begins where only our own references count: in texts, in single quotes and in quoted
//! here-documents.
//!
//! Dollars are read in pairs from the left, as the shell reads them: `$${` is a literal `${`, and in
//! `$$${item}` the first two stand for themselves.

use super::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dollar {
    /// `$${`: a literal `${`.
    Literal,
    /// `${`: perhaps a reference.
    Brace,
    /// `$$`, which stands for itself.
    Pair,
    Alone,
}

impl Dollar {
    pub(super) fn at(cursor: &Cursor<'_>) -> Self {
        if cursor.is_at("$${") {
            Self::Literal
        } else if cursor.starts_with("${") {
            Self::Brace
        } else if cursor.starts_with("$$") {
            Self::Pair
        } else {
            Self::Alone
        }
    }

    /// In characters.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Literal => 3,
            Self::Brace | Self::Pair => 2,
            Self::Alone => 1,
        }
    }
}
