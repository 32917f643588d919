//! The bytes of an input as one JSON value.
//!
//! For every format the text is UTF-8, and a byte order mark at its front is dropped. The bytes arrive
//! whole; streaming would give the first items of an input that is then refused.

use serde_json::Value;

use super::error::InputError;
use super::format::InputFormat;
use super::table;

/// JSON gives its document, every other format an array of its lines or records.
pub fn read(bytes: &[u8], format: InputFormat) -> Result<Value, InputError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error, format))?;
    match format {
        InputFormat::Json => read_json(text),
        InputFormat::JsonLines => read_json_lines(text).map(Value::Array),
        InputFormat::Csv | InputFormat::Tsv => table::read(text, format).map(Value::Array),
        InputFormat::Lines => Ok(read_lines(text)),
    }
}

fn not_utf8(bytes: &[u8], error: std::str::Utf8Error, format: InputFormat) -> InputError {
    let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
    let valid = String::from_utf8_lossy(valid);
    let refused = InputError::new(Some(format), "the text is not UTF-8").at(&valid, valid.len());
    // The byte order marks of UTF-16, which some systems write by default.
    match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => refused.help("it looks like UTF-16; save it as UTF-8"),
        _ => refused,
    }
}

/// The parser's messages are kept where they are words; its columns in bytes become columns in
/// characters. It refuses documents nested more than 128 deep, which makes recursion over values safe in
/// this crate.
fn read_json(text: &str) -> Result<Value, InputError> {
    if text.trim_ascii().is_empty() {
        return Err(InputError::new(Some(InputFormat::Json), "the document is empty"));
    }
    serde_json::from_str(text).map_err(|error| {
        let line = text.split('\n').nth(error.line().saturating_sub(1));
        let refused = refusal(&error, line.unwrap_or_default(), InputFormat::Json).at_line(error.line());
        if refused.message == "trailing characters" {
            return refused.help("if every line is a value of its own, use the format `jsonl`");
        }
        refused
    })
}

/// `line` is the line that the error names.
fn refusal(error: &serde_json::Error, line: &str, format: InputFormat) -> InputError {
    let refused = InputError::new(Some(format), clause(error));
    let before = |(at, _): &(usize, char)| *at < error.column();
    match line.char_indices().take_while(before).count() {
        0 => refused,
        column => refused.at_column(column),
    }
}

fn clause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let split = text.rsplit_once(" at line ");
    let clause = split.map_or(text.as_str(), |(clause, _)| clause);
    clause.replacen("EOF while", "the text ends while", 1)
}

/// Blank lines are skipped, as by every tool that reads this format; a value over several lines is
/// refused, because the line of a mistake would be unclear.
fn read_json_lines(text: &str) -> Result<Vec<Value>, InputError> {
    let lines = text.split('\n').zip(1..);
    lines
        .filter(|(line, _)| !line.trim_ascii().is_empty())
        .map(|(line, number)| {
            serde_json::from_str(line).map_err(|error| {
                let refused = refusal(&error, line, InputFormat::JsonLines).at_line(number);
                if error.is_eof() {
                    return refused.help("for a value over several lines, use the format `json`");
                }
                refused
            })
        })
        .collect()
}

/// Lines end with LF or CRLF; the last one may end with the input. Nothing is trimmed and no line is
/// left out, not even an empty one.
fn read_lines(text: &str) -> Value {
    text.lines().map(Value::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_newline_is_optional_and_empty_lines_are_lines() {
        for (text, lines) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\r\nb\r\n", &["a", "b"]),
            ("a\n\n b \n\n", &["a", "", " b ", ""]),
            ("a\rb", &["a\rb"]),
        ] {
            assert_eq!(read_lines(text), Value::from(lines), "{text:?}");
        }
    }
}
