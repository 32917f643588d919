//! The definition of a step as clients send it: with nulls and empty texts for absent fields, and, if an earlier
//! release has registered it, with keys that are unknown here.

use serde_json::Value;

use super::keys::{MappingTable, ValueShape};

/// Removes unknown keys and empty values.
pub fn plain_definition(definition: &Value) -> Value {
    let mut definition = definition.clone();
    without_nulls(&mut definition);
    retain_known(&mut definition, &ValueShape::Keys(MappingTable::FlowStep));
    definition
}

/// Removes empty values, and keeps unknown keys, so that they can be refused by name.
pub fn without_unset(definition: &Value) -> Value {
    let mut definition = definition.clone();
    without_nulls(&mut definition);
    let attributes = definition.get_mut("attributes").and_then(Value::as_object_mut);
    for attribute in attributes.into_iter().flat_map(|them| them.values_mut()) {
        if let Some(attribute) = attribute.as_object_mut() {
            attribute.retain(|key, value| !is_unset(key, value));
        }
    }
    definition
}

/// Many clients send an empty text, which is not JSON, for an absent default.
fn is_unset(key: &str, value: &Value) -> bool {
    key == "default" && value == ""
}

fn retain_known(value: &mut Value, shape: &ValueShape) {
    let Value::Object(entries) = value else {
        return;
    };
    match shape {
        ValueShape::Keys(table) => {
            entries.retain(|key, value| table.key(key).is_some() && !is_unset(key, value));
            for (key, value) in entries {
                if let Some(key) = table.key(key) {
                    retain_known(value, &key.shape);
                }
            }
        }
        ValueShape::MapOf(inner) => entries.values_mut().for_each(|value| retain_known(value, inner)),
        _ => {}
    }
}

/// Some clients send null for an absent field.
pub fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
