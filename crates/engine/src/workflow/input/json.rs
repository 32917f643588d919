//! One JSON document, and the error if it is not one.
//!
//! The parser's messages are kept where they are words; its columns in bytes become columns in
//! characters. It refuses documents nested more than 128 deep, which makes recursion over values safe in
//! this crate.

use serde_json::Value;

use super::error::InputError;
use super::format::InputFormat;

pub(super) fn read(text: &str) -> Result<Value, InputError> {
    if text.trim_ascii().is_empty() {
        return Err(InputError::new(Some(InputFormat::Json), "the document is empty"));
    }
    serde_json::from_str(text).map_err(|error| {
        let line = text.split('\n').nth(error.line().saturating_sub(1));
        let refused = refusal(&error, line.unwrap_or_default(), InputFormat::Json).at_line(error.line());
        if refused.message == "trailing characters" {
            return refused.help("if every line is a value of its own, the format is `jsonl`");
        }
        refused
    })
}

/// `line` is the line that the error names.
pub(super) fn refusal(error: &serde_json::Error, line: &str, format: InputFormat) -> InputError {
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
