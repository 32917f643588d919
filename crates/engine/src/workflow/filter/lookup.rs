//! Whether one value holds another: what `contains` and `in` mean.
//!
//! Both are one question asked from two sides, so there is one answer here. It never fails: what
//! cannot hold anything holds nothing.

use serde_json::Value;

use super::order::compare;

/// Text holds a piece of text, an array an element, an object a key.
pub(super) fn holds(container: &Value, sought: &Value) -> bool {
    match (container, sought) {
        (Value::String(text), Value::String(piece)) => text.contains(piece.as_str()),
        (Value::Array(elements), _) => elements
            .iter()
            .any(|element| compare(element, sought).is_eq()),
        (Value::Object(fields), Value::String(key)) => fields.contains_key(key),
        _ => false,
    }
}
