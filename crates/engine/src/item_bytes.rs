//! Items that are bytes and not text, such as file names in an old encoding.
//!
//! A value is JSON, which holds text only, so such an item is stored as `{"base64": "…"}`. Bytes that are text are
//! never stored in this form, so every item has one form.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

const KEY: &str = "base64";

/// Bytes as JSON: a text, or `{"base64": …}` if they are not text.
pub fn item_value(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::String(text),
        Err(error) => json!({ KEY: BASE64_STANDARD.encode(error.as_bytes()) }),
    }
}

/// The bytes of an item that is not text; `None` for every other value.
pub fn item_bytes(value: &Value) -> Option<Vec<u8>> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    let bytes = BASE64_STANDARD.decode(fields.get(KEY)?.as_str()?).ok()?;
    std::str::from_utf8(&bytes).is_err().then_some(bytes)
}

/// The beginning of the bytes as text that a user can read: what is not text is written as `\xE9`.
pub(crate) fn readable(bytes: &[u8], most: usize) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a text cannot fail.
            let _ = write!(text, "\\x{byte:02X}");
        }
        if text.len() >= most {
            break;
        }
    }
    text.truncate(text.floor_char_boundary(most));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_come_back_unchanged_and_text_stays_text() {
        assert_eq!(item_value(b"caf\xc3\xa9".to_vec()), json!("caf\u{e9}"));
        let stored = item_value(b"caf\xe9".to_vec());
        assert_eq!(stored, json!({"base64": "Y2Fm6Q=="}));
        assert_eq!(item_bytes(&stored), Some(b"caf\xe9".to_vec()));
    }

    #[test]
    fn only_the_stored_form_of_bytes_is_bytes() {
        let others = [
            json!({"base64": "aGVsbG8="}),
            json!({"base64": "Y2Fm6Q==", "more": 1}),
            json!({"base64": "not base64"}),
            json!({"base64": 1}),
            json!("Y2Fm6Q=="),
        ];
        for other in others {
            assert_eq!(item_bytes(&other), None, "{other}");
        }
    }

    #[test]
    fn bytes_are_readable_and_short() {
        assert_eq!(readable(b"caf\xe9\n\xff", 100), "caf\\xE9\\n\\xFF");
        assert_eq!(readable("\u{e9}".repeat(9).as_bytes(), 3), "\u{e9}");
    }
}
