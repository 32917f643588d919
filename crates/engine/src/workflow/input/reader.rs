//! The bytes of an input as one JSON value.
//!
//! For every format the text is UTF-8, and a byte order mark at its front is dropped. The bytes arrive
//! whole; streaming would give the first items of an input that is then refused.

use serde_json::Value;

use super::format::InputFormat;
use super::table;

/// Why an input was refused, and where. Lines and columns are counted from 1 and columns in characters,
/// as editors show them. The caller adds the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.location())]
pub struct InputError {
    /// `None` if the document was read and holds the wrong value.
    pub format: Option<InputFormat>,
    pub line: Option<usize>,
    pub column: Option<usize>,
    /// A lower-case clause.
    pub message: String,
    pub help: Option<String>,
}

impl InputError {
    pub(super) fn new(format: Option<InputFormat>, message: impl Into<String>) -> Self {
        Self { format, line: None, column: None, message: message.into(), help: None }
    }

    pub(super) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub(super) fn at_column(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    /// Adds the line and column of this byte of the text.
    pub(super) fn at(self, text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let begun = before.rsplit('\n').next().unwrap_or_default();
        self.at_line(before.matches('\n').count().saturating_add(1))
            .at_column(begun.chars().count().saturating_add(1))
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn location(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: "),
            (Some(line), None) => format!("line {line}: "),
            (None, _) => String::new(),
        }
    }
}

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
    let clause = text.rsplit_once(" at line ").map_or(text.as_str(), |(clause, _)| clause);
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
                    return refused.help("for a value that spans several lines, use the format `json`");
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

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let error = InputError::new(Some(InputFormat::Json), "expected value");
        assert_eq!(error.to_string(), "expected value");
        assert_eq!(error.clone().at_line(3).to_string(), "line 3: expected value");
        let text = "a\nüöä!";
        assert_eq!(error.at(text, 8).to_string(), "line 2, column 4: expected value");
    }
}
