//! The definition of a step as clients send it: with keys that are unknown here, and with nulls for
//! absent fields.

use serde_json::{Map, Value};

use super::keys::MappingTable;

pub fn plain_definition(definition: &Value) -> Value {
    let mut definition = definition.clone();
    without_nulls(&mut definition);
    let Value::Object(entries) = &definition else {
        return definition;
    };
    let inner = |key: &str, value: &Value| match key {
        "http" => known(value, MappingTable::FlowHttp),
        "flow" => known(value, MappingTable::FlowGoals),
        "predicate" => known(value, MappingTable::Predicate),
        "work_config" => known(value, MappingTable::WorkConfig),
        "attributes" => attributes(value),
        _ => value.clone(),
    };
    pick(entries, MappingTable::FlowStep, inner)
}

fn attributes(value: &Value) -> Value {
    let Value::Object(entries) = value else {
        return value.clone();
    };
    let inner = |key: &str, value: &Value| match key {
        "mapping" => known(value, MappingTable::Mapping),
        _ => value.clone(),
    };
    let entries = entries.iter().map(|(name, attribute)| {
        let attribute = match attribute {
            Value::Object(entries) => pick(entries, MappingTable::Attribute, inner),
            other => other.clone(),
        };
        (name.clone(), attribute)
    });
    Value::Object(entries.collect())
}

fn known(value: &Value, table: MappingTable) -> Value {
    match value {
        Value::Object(entries) => pick(entries, table, |_, value| value.clone()),
        other => other.clone(),
    }
}

fn pick(entries: &Map<String, Value>, table: MappingTable, inner: impl Fn(&str, &Value) -> Value) -> Value {
    // Many clients send an empty text, which is not JSON, for an absent default.
    let given = |key: &str, value: &Value| key != "default" || value.as_str() != Some("");
    let entries = entries.iter().filter(|(key, value)| table.key(key).is_some() && given(key, value));
    let entries = entries.map(|(key, value)| (key.clone(), inner(key, value)));
    Value::Object(entries.collect())
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
