//! One JSON value a line.
//!
//! Blank lines are skipped, as by every tool that reads this format; a value over several lines is
//! refused, because the line of a mistake would be unclear.

use serde_json::Value;

use super::error::InputError;
use super::format::InputFormat;
use super::json;

pub(super) fn read(text: &str) -> Result<Vec<Value>, InputError> {
    let lines = text.split('\n').zip(1..);
    lines
        .filter(|(line, _)| !line.trim_ascii().is_empty())
        .map(|(line, number)| {
            serde_json::from_str(line).map_err(|error| {
                let refused = json::refusal(&error, line, InputFormat::JsonLines).at_line(number);
                if error.is_eof() {
                    return refused.help("a value over several lines is read with format `json`");
                }
                refused
            })
        })
        .collect()
}
