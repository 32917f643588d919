//! The bytes of an input as one JSON value.
//!
//! For every format the text is UTF-8, and a byte order mark at its front is dropped. The bytes arrive
//! whole; streaming would give the first items of an input that is then refused.

use serde_json::Value;

use super::error::InputError;
use super::format::InputFormat;
use super::{json, json_lines, lines, table};

/// JSON gives its document, every other format an array of its lines or records.
pub fn read(bytes: &[u8], format: InputFormat) -> Result<Value, InputError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error, format))?;
    match format {
        InputFormat::Json => json::read(text),
        InputFormat::JsonLines => json_lines::read(text).map(Value::Array),
        InputFormat::Csv | InputFormat::Tsv => table::read(text, format).map(Value::Array),
        InputFormat::Lines => Ok(Value::Array(lines::read(text))),
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
