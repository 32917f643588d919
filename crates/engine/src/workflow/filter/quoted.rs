//! Text in quotes, single or double, with the escapes of JSON (and `\'`), in filters and templates.
//!
//! Every JSON string is also one here. An undefined escape is refused rather than guessed, so that a
//! pattern written for another language is noticed.

use super::syntax_error::{SyntaxError, quote};
use crate::workflow::cursor::Cursor;

/// Reads from the opening quote, which comes next, past the closing one.
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
