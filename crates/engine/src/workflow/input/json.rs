//! One JSON document, and what is said when it is not one.
//!
//! Its parser's own words are kept except where they are not words; the place it gives in bytes
//! becomes one in characters. Documents nested more than 128 deep are refused by that parser, which
//! is what makes recursion over values safe in this crate.

use serde_json::Value;

use super::error::InputError;
use super::format::Format;

pub(super) fn read(text: &str) -> Result<Value, InputError> {
    if text.trim_ascii().is_empty() {
        return Err(InputError::new(Some(Format::Json), "the document is empty"));
    }
    serde_json::from_str(text).map_err(|error| {
        let line = text.split('\n').nth(error.line().saturating_sub(1));
        let refused = refusal(&error, line.unwrap_or_default(), Format::Json).at_line(error.line());
        if refused.message == "trailing characters" {
            return refused.help("if every line is a value of its own, the format is `jsonl`");
        }
        refused
    })
}

/// The error as one of ours, with its column in the line it names.
pub(super) fn refusal(error: &serde_json::Error, line: &str, format: Format) -> InputError {
    let refused = InputError::new(Some(format), clause(error));
    let read = line
        .char_indices()
        .take_while(|(at, _)| *at < error.column());
    match read.count() {
        0 => refused,
        column => refused.at_column(column),
    }
}

fn clause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let clause = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(clause, _)| clause);
    clause.replacen("EOF while", "the text ends while", 1)
}
