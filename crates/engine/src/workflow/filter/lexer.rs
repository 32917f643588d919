//! Splits the text of a filter into tokens.
//!
//! It knows spelling, not grammar. Operators of other languages (`=`, `&`, `<>`, typographic quotes)
//! are refused here with the one to use, because only here can they be recognised. Where a sign and a
//! word mean the same (`&&` and `and`) there is one token; `!` and `not` stay two, because readers
//! expect them to bind differently.

use std::ops::Range;

use serde_json::{Number, Value};

use super::field_path::{self, FieldPath, begins_name};
use super::quoted::quoted;
use super::syntax_error::{SyntaxError, quote};
use crate::workflow::cursor::Cursor;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FilterToken {
    Path(FieldPath),
    Literal(Value),
    Compare(ComparisonOperator),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonOperator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Clone, Debug)]
pub(super) struct LocatedToken {
    pub(super) token: FilterToken,
    pub(super) range: Range<usize>,
}

impl FilterToken {
    /// `None` for the name of a field. Case does not matter, as in SQL; a field called `AND` is
    /// `item.AND`.
    fn of_word(word: &str) -> Option<Self> {
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

/// Longest first where one begins another.
const SIGNS: [(&str, FilterToken); 14] = [
    ("==", FilterToken::Compare(ComparisonOperator::Equal)),
    ("!=", FilterToken::Compare(ComparisonOperator::NotEqual)),
    ("<=", FilterToken::Compare(ComparisonOperator::AtMost)),
    (">=", FilterToken::Compare(ComparisonOperator::AtLeast)),
    ("<", FilterToken::Compare(ComparisonOperator::Less)),
    (">", FilterToken::Compare(ComparisonOperator::Greater)),
    ("||", FilterToken::Or),
    ("&&", FilterToken::And),
    ("!", FilterToken::Bang),
    ("(", FilterToken::OpenParenthesis),
    (")", FilterToken::CloseParenthesis),
    ("[", FilterToken::OpenBracket),
    ("]", FilterToken::CloseBracket),
    (",", FilterToken::Comma),
];

/// Operators of other languages, and what to write instead.
const FOREIGN: [(&str, &str); 9] = [
    ("===", "write `==`"),
    ("!==", "write `!=`"),
    ("<>", "write `!=`"),
    ("=<", "write `<=`"),
    ("=>", "write `>=`"),
    ("=~", "patterns are not supported; use `contains` to search text"),
    ("=", "write `==`"),
    ("&", "write `&&`"),
    ("|", "write `||`"),
];

/// At the end always [`FilterToken::End`].
pub(super) fn next_token(cursor: &mut Cursor<'_>) -> Result<LocatedToken, SyntaxError> {
    cursor.skip_whitespace();
    let start = cursor.at();
    let token = match cursor.peek() {
        None => FilterToken::End,
        Some('\'' | '"') => FilterToken::Literal(Value::String(quoted(cursor)?)),
        Some('-' | '0'..='9') => FilterToken::Literal(Value::Number(number(cursor)?)),
        Some(first) if begins_name(first) => word(cursor)?,
        Some(first) => sign(cursor, first)?,
    };
    Ok(LocatedToken { token, range: cursor.since(start) })
}

fn word(cursor: &mut Cursor<'_>) -> Result<FilterToken, SyntaxError> {
    let mut ahead = *cursor;
    if let Some(token) = FilterToken::of_word(&field_path::name(&mut ahead)) {
        *cursor = ahead;
        return Ok(token);
    }
    FieldPath::read(cursor).map(FilterToken::Path)
}

fn sign(cursor: &mut Cursor<'_>, first: char) -> Result<FilterToken, SyntaxError> {
    let mut after = *cursor;
    if let Some((sign, help)) = FOREIGN.iter().find(|(sign, _)| eat_foreign(&mut after, sign)) {
        let message = format!("`{sign}` is not an operator");
        return Err(SyntaxError::new(after.since(cursor.at()), message).help(*help));
    }
    if let Some((_, token)) = SIGNS.into_iter().find(|(sign, _)| cursor.eat(sign)) {
        return Ok(token);
    }
    let message = format!("unexpected {}", quote(first.encode_utf8(&mut [0; 4])));
    let error = SyntaxError::new(cursor.next_range(), message);
    let help = match first {
        '“' | '”' | '‘' | '’' | '`' | '«' | '»' => {
            "write text in straight quotes: 'text' or \"text\""
        }
        '.' if matches!(cursor.peek_second(), Some('0'..='9')) => "write `0.5`, not `.5`",
        '.' => "to use a field named like a keyword, write `item.in`",
        '$' | '@' => "write `item` for the item and `item.name` for its field",
        '{' | '}' => "objects cannot be written in a filter; compare their fields",
        '+' | '*' | '/' | '%' => "arithmetic is not supported in a filter",
        _ => return Err(error),
    };
    Err(error.help(help))
}

/// Ours that begin with a foreign operator (`==`) are let through.
fn eat_foreign(after: &mut Cursor<'_>, sign: &str) -> bool {
    let ours = matches!(sign, "=" | "&" | "|") && ["==", "&&", "||"].iter().any(|sign| after.is_at(sign));
    !ours && after.eat(sign)
}

/// Numbers are read by the parser that reads the input, so a number that is written the same way in both
/// places is the same value, whatever the parser does with one that no float can hold.
fn number(cursor: &mut Cursor<'_>) -> Result<Number, SyntaxError> {
    let start = cursor.at();
    // Everything that could be part of it is taken, so that `12abc` and `1-2` are refused as a whole
    // instead of being read as two tokens.
    let text = cursor.take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '+' | '-' | '_'));
    serde_json::from_str(&text).map_err(|_| {
        SyntaxError::new(cursor.since(start), format!("{} is not a number", quote(&text)))
            .help("write numbers as in JSON, and text in quotes")
    })
}
