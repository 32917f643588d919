//! Rules in words.

use serde_json::Value;

/// A rule in one line: `exit_code 64, 65 → retry (attempts 20, backoff fixed)`. Settings that equal those of its
/// command (`usual`) are omitted.
pub fn rule_in_words(written: &Value, usual: &Value) -> String {
    let Value::Object(fields) = written else {
        return value_in_words(written);
    };
    let is_condition = |name: &str| !["then", "retry_config"].contains(&name);
    let conditions =
        fields.iter().filter(|(name, value)| is_condition(name) && !value.is_null() && !is_empty_list(value));
    let conditions: Vec<String> = conditions
        .map(|(name, value)| match (name.as_str(), value) {
            ("stderr" | "output", Value::String(pattern)) => format!("{name} /{pattern}/"),
            _ => format!("{name} {}", value_in_words(value)),
        })
        .collect();
    let when = if conditions.is_empty() { "anything".to_owned() } else { conditions.join(" and ") };
    let then = fields.get("then").map(value_in_words).unwrap_or_default();
    let own = match fields.get("retry_config") {
        Some(Value::Object(own)) => {
            let own = own.iter().filter(|(name, value)| {
                usual.get(name) != Some(value) && !value.is_null() && !is_empty_list(value)
            });
            let own: Vec<String> =
                own.map(|(name, value)| format!("{name} {}", value_in_words(value))).collect();
            if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) }
        }
        _ => String::new(),
    };
    format!("{when} → {then}{own}")
}

/// A value without JSON syntax: `exponential (base 2.0)`.
pub fn value_in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(value_in_words).collect::<Vec<_>>().join(", "),
        Value::Object(object) => {
            let parts = object.iter().map(|(name, inner)| match inner {
                Value::Object(_) => format!("{name} ({})", value_in_words(inner)),
                _ => format!("{name} {}", value_in_words(inner)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}
