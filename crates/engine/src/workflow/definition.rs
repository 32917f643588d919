//! The definition of a step as others send it: they may say more than is understood here, and write
//! out what they do not say.

use serde_json::{Map, Value};

use super::keys::Table;

/// The definition without keys that mean nothing here, and without those whose value says nothing.
pub fn plain_definition(definition: &Value) -> Value {
    let mut definition = definition.clone();
    without_nulls(&mut definition);
    let Value::Object(entries) = &definition else {
        return definition;
    };
    let inner = |key: &str, value: &Value| match key {
        "http" => known(value, Table::FlowHttp),
        "flow" => known(value, Table::FlowGoals),
        "predicate" => known(value, Table::Predicate),
        "work_config" => known(value, Table::WorkConfig),
        "attributes" => attributes(value),
        _ => value.clone(),
    };
    pick(entries, Table::FlowStep, inner)
}

fn attributes(value: &Value) -> Value {
    let Value::Object(entries) = value else {
        return value.clone();
    };
    let inner = |key: &str, value: &Value| match key {
        "mapping" => known(value, Table::Mapping),
        _ => value.clone(),
    };
    let entries = entries.iter().map(|(name, attribute)| {
        let attribute = match attribute {
            Value::Object(entries) => pick(entries, Table::Attribute, inner),
            other => other.clone(),
        };
        (name.clone(), attribute)
    });
    Value::Object(entries.collect())
}

fn known(value: &Value, table: Table) -> Value {
    match value {
        Value::Object(entries) => pick(entries, table, |_, value| value.clone()),
        other => other.clone(),
    }
}

fn pick(
    entries: &Map<String, Value>,
    table: Table,
    inner: impl Fn(&str, &Value) -> Value,
) -> Value {
    // An empty text is no JSON, and what many write for nothing.
    let said = |key: &str, value: &Value| key != "default" || value.as_str() != Some("");
    let listed = |key: &str| table.keys().any(|known| known.name() == key);
    let entries = entries.iter();
    let entries = entries.filter(|(key, value)| listed(key) && said(key, value));
    let entries = entries.map(|(key, value)| (key.clone(), inner(key, value)));
    Value::Object(entries.collect())
}

/// Removes fields that are null: some clients write that for what is not there.
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
