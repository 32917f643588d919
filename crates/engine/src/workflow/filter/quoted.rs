//! Text in quotes, single or double, with the escapes of JSON (and `\'`).
//!
//! Every JSON string is also one here. An undefined escape is refused rather than guessed, so that a
//! pattern written for another language is noticed.

use super::cursor::{Cursor, shown};
use super::syntax_error::SyntaxError;

/// Reads from the opening quote, which comes next, past the closing one.
pub(super) fn quoted(cursor: &mut Cursor<'_>) -> Result<String, SyntaxError> {
    let start = cursor.at();
    let quote = cursor.bump();
    let mut text = String::new();
    loop {
        let at = cursor.at();
        match cursor.bump() {
            None => {
                let missing = quote.unwrap_or('\'');
                let error = SyntaxError::new(cursor.since(start), "the text in quotes has no end");
                return Err(error.help(format!("close it with {missing}")));
            }
            closing if closing == quote => return Ok(text),
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
            let sequence = shown(&format!("\\{other}")).replace("\\\\", "\\");
            let message = format!("there is no escape {sequence}");
            let error = SyntaxError::new(cursor.since(start), message);
            return Err(error.help("a backslash is written `\\\\`"));
        }
        None => {
            let message = "the text ends after a backslash";
            return Err(SyntaxError::new(cursor.since(start), message));
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
        _ => Err(SyntaxError::new(cursor.since(start), "half of a surrogate pair is not a character")),
    }
}

fn unit(cursor: &mut Cursor<'_>, start: usize) -> Result<u16, SyntaxError> {
    let mut digits = String::new();
    while digits.len() < 4 {
        match cursor.peek() {
            Some(digit) if digit.is_ascii_hexdigit() => {
                digits.push(digit);
                cursor.bump();
            }
            _ => break,
        }
    }
    let whole = Some(&digits).filter(|digits| digits.len() == 4);
    let unit = whole.and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let message = "`\\u` needs four hexadecimal digits after it";
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
    fn what_cannot_be_read_is_marked() {
        for (text, range, message) in [
            ("'open", 0..5, "the text in quotes has no end"),
            (r"'a\d'", 2..4, r"there is no escape `\d`"),
            (r"'\", 1..2, "the text ends after a backslash"),
            (r"'\u12'", 1..5, r"`\u` needs four hexadecimal digits after it"),
            (r"'\ud83d'", 1..7, "half of a surrogate pair is not a character"),
            (r"'\ud83dA'", 1..7, "half of a surrogate pair is not a character"),
            (r"'\ude00'", 1..7, "half of a surrogate pair is not a character"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.range, error.message.as_str()), (range, message));
        }
    }
}
