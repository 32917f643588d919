//! The tokens of a filter.
//!
//! Where a sign and a word mean the same (`&&` and `and`) there is one token; `!` and `not` stay
//! two, because readers expect them to bind differently.

use std::ops::Range;

use serde_json::Value;

use super::field_path::FieldPath;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Path(FieldPath),
    Literal(Value),
    Compare(Comparison),
    Or,
    And,
    Not,
    Bang,
    In,
    Contains,
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    Comma,
    End,
}

impl Token {
    /// `None` for the name of a field. Case does not matter, as in SQL; a field called `AND` is
    /// `item.AND`.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "or" => Self::Or,
            "and" => Self::And,
            "not" => Self::Not,
            "in" => Self::In,
            "contains" => Self::Contains,
            "true" => Self::Literal(Value::Bool(true)),
            "false" => Self::Literal(Value::Bool(false)),
            "null" => Self::Literal(Value::Null),
            _ => return None,
        })
    }

    pub(super) fn is_relation(&self) -> bool {
        matches!(self, Self::Compare(_) | Self::In | Self::Contains)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) token: Token,
    pub(super) range: Range<usize>,
}
