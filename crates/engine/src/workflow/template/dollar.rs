//! What a `$` begins where nothing but our own references counts.
//!
//! So it is in texts, in single quotes and in quoted here-documents. Dollars are read in pairs
//! from the left, as the shell reads them: `$${` is a literal `${`, and in `$$${item}` the first
//! two stand for themselves.

use super::cursor::Cursor;

/// What a `$` begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dollar {
    /// `$${`: a literal `${`.
    Literal,
    /// `${`: perhaps a reference.
    Brace,
    /// `$$`, which stands for itself.
    Pair,
    /// A `$` that stands for itself.
    Alone,
}

impl Dollar {
    /// What the `$` begins that the cursor stands at.
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

    /// How many characters belong to it.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Literal => 3,
            Self::Brace | Self::Pair => 2,
            Self::Alone => 1,
        }
    }
}
