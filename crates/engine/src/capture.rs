//! Reads the output of a command in the format of its `capture_format`.

use serde_json::Value;

use crate::workflow::CaptureFormat;

/// A line break at the end is not part of the value. The error is a clause.
pub fn read(output: &str, format: CaptureFormat) -> Result<Value, String> {
    let text = without_line_end(output);
    match format {
        CaptureFormat::String => Ok(text.into()),
        CaptureFormat::Lines => Ok(text.lines().map(Value::from).collect()),
        CaptureFormat::Json => {
            serde_json::from_str(text).map_err(|error| format!("the output is not JSON: {error}"))
        }
        CaptureFormat::Number => match serde_json::from_str(text.trim()) {
            Ok(number @ Value::Number(_)) => Ok(number),
            _ => Err(format!("the output `{}` is not a number", short(text))),
        },
        CaptureFormat::Boolean => match text.trim() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err(format!("the output `{}` is neither true nor false", short(text))),
        },
    }
}

pub fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn short(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_is_read_in_its_format() {
        use CaptureFormat::{Boolean, Json, Lines, Number, String};
        for (output, format, value) in [
            ("a b\n", String, json!("a b")),
            ("a\n\n", String, json!("a\n")),
            ("", String, json!("")),
            ("a\r\nb\r\n", Lines, json!(["a", "b"])),
            ("{\"a\": 1}\n", Json, json!({"a": 1})),
            (" 42\n", Number, json!(42)),
            ("-1.5e3", Number, json!(-1500.0)),
            ("true\n", Boolean, json!(true)),
            ("false", Boolean, json!(false)),
        ] {
            assert_eq!(read(output, format), Ok(value), "{output:?}");
        }
    }

    #[test]
    fn output_in_another_format_is_refused_and_quoted() {
        let refused = |output, format| read(output, format).unwrap_err();
        assert_eq!(refused("twelve", CaptureFormat::Number), "the output `twelve` is not a number");
        assert_eq!(refused("yes\n", CaptureFormat::Boolean), "the output `yes` is neither true nor false");
        assert!(refused("{", CaptureFormat::Json).starts_with("the output is not JSON"));
        assert!(refused(&"x".repeat(99), CaptureFormat::Number).contains("x…"));
    }
}
