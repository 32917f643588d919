//! One text a line.
//!
//! Lines end with LF or CRLF; the last one may end with the input. Nothing is trimmed and no line is
//! left out, not even an empty one.

use serde_json::Value;

pub(super) fn read(text: &str) -> Vec<Value> {
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
            assert_eq!(read(text), lines, "{text:?}");
        }
    }
}
