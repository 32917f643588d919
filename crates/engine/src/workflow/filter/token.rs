//! The words and signs a filter is made of.
//!
//! Where a sign and a word mean the same (`&&` and `and`) there is one token; `!` and `not` stay
//! two, because readers expect them to bind differently.

use std::ops::Range;

use serde_json::Value;

use super::field_path::FieldPath;

/// One word or sign.
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
    /// What a bare word means, if it is not the name of a field. Case does not matter: `AND` is
    /// what people who know SQL write, and a field of that name is still `item.AND`.
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

    /// Whether it stands between two values and asks how they are related.
    pub(super) fn is_relation(&self) -> bool {
        matches!(self, Self::Compare(_) | Self::In | Self::Contains)
    }
}

/// How two values may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A token and the bytes it was read from.
#[derive(Clone, Debug)]
pub(super) struct Located {
    pub(super) token: Token,
    pub(super) range: Range<usize>,
}
