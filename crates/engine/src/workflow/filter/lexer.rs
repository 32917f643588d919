//! Splits the text of a filter into tokens.
//!
//! It knows spelling, not grammar. Operators of other languages (`=`, `&`, `<>`, typographic quotes)
//! are refused here with the one to use, because only here can they be recognised. Where a sign and a
//! word mean the same (`&&` and `and`) there is one token; `!` and `not` stay two, because readers
//! expect them to bind differently.

use std::ops::Range;

use serde_json::{Number, Value};

use super::field_path::{self, FieldPath, begins_name};
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

/// Text in quotes, single or double, with the escapes of JSON (and `\'`); the opening quote comes next.
///
/// Every JSON string is also one here. An undefined escape is refused rather than guessed, so that a
/// pattern written for another language is noticed.
pub(in crate::workflow) fn quoted(cursor: &mut Cursor<'_>) -> Result<String, SyntaxError> {
    let start = cursor.at();
    let delimiter = cursor.bump();
    let mut text = String::new();
    loop {
        let at = cursor.at();
        match cursor.bump() {
            None => {
                let missing = delimiter.unwrap_or('\'');
                let error = SyntaxError::new(cursor.since(start), "the string is not closed");
                return Err(error.help(format!("add a closing `{missing}`")));
            }
            closing if closing == delimiter => return Ok(text),
            Some('\\') => text.push(escape(cursor, at)?),
            Some(plain) => text.push(plain),
        }
    }
}

/// Reads what follows the backslash at `start`.
fn escape(cursor: &mut Cursor<'_>, start: usize) -> Result<char, SyntaxError> {
    Ok(match cursor.bump() {
        Some(plain @ ('\\' | '\'' | '"' | '/')) => plain,
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('u') => return code_point(cursor, start),
        Some(other) => {
            let sequence = quote(&format!("\\{other}")).replace("\\\\", "\\");
            let error = SyntaxError::new(cursor.since(start), format!("unknown escape {sequence}"));
            return Err(error.help("write `\\\\` for a backslash"));
        }
        None => {
            return Err(SyntaxError::new(cursor.since(start), "the text ends after a backslash"));
        }
    })
}

/// Four hexadecimal digits, or twice four for a surrogate pair.
fn code_point(cursor: &mut Cursor<'_>, start: usize) -> Result<char, SyntaxError> {
    let mut units = vec![unit(cursor, start)?];
    let leads = |unit: &u16| (0xD800..0xDC00).contains(unit);
    if units.first().is_some_and(leads) && cursor.eat("\\u") {
        units.push(unit(cursor, start)?);
    }
    let mut decoded = char::decode_utf16(units);
    match (decoded.next(), decoded.next()) {
        (Some(Ok(decoded)), None) => Ok(decoded),
        _ => Err(SyntaxError::new(cursor.since(start), "the escape is half of a surrogate pair")),
    }
}

fn unit(cursor: &mut Cursor<'_>, start: usize) -> Result<u16, SyntaxError> {
    let mut digits = String::new();
    while digits.len() < 4
        && let Some(digit) = cursor.peek().filter(char::is_ascii_hexdigit)
    {
        digits.push(digit);
        cursor.bump();
    }
    let complete = digits.len() == 4;
    let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| complete);
    let message = "`\\u` must be followed by four hexadecimal digits";
    unit.ok_or_else(|| SyntaxError::new(cursor.since(start), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, SyntaxError> {
        quoted(&mut Cursor::new(text))
    }

    #[test]
    fn either_quote_may_hold_the_other() {
        assert_eq!(read(r#"'say "hi"' tail"#).unwrap(), r#"say "hi""#);
        assert_eq!(read(r#""it's""#).unwrap(), "it's");
        assert_eq!(read(r"'it\'s'").unwrap(), "it's");
    }

    #[test]
    fn the_escapes_of_json_are_read() {
        assert_eq!(read(r"'\n\t\r\b\f\/\\\u00e9\ud83d\ude00'").unwrap(), "\n\t\r\u{8}\u{c}/\\é😀");
    }

    #[test]
    fn the_mistake_in_a_string_is_marked() {
        for (text, range, message) in [
            ("'open", 0..5, "the string is not closed"),
            (r"'a\d'", 2..4, r"unknown escape `\d`"),
            (r"'\", 1..2, "the text ends after a backslash"),
            (r"'\u12'", 1..5, r"`\u` must be followed by four hexadecimal digits"),
            (r"'\ud83d'", 1..7, "the escape is half of a surrogate pair"),
            (r"'\ud83dA'", 1..7, "the escape is half of a surrogate pair"),
            (r"'\ude00'", 1..7, "the escape is half of a surrogate pair"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.range, error.message.as_str()), (range, message));
        }
    }
}
