//! What `contains` and `in` mean: one question asked from two sides.
//!
//! The answer never fails: a value that cannot contain anything contains nothing.

use serde_json::Value;

use super::order::compare;

/// Text contains a piece of text, an array an element, an object a key.
pub(super) fn holds(container: &Value, sought: &Value) -> bool {
    match (container, sought) {
        (Value::String(text), Value::String(piece)) => text.contains(piece.as_str()),
        (Value::Array(elements), _) => elements.iter().any(|element| compare(element, sought).is_eq()),
        (Value::Object(fields), Value::String(key)) => fields.contains_key(key),
        _ => false,
    }
}
