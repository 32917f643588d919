//! JSON Schema for editors, made from the tables of keys.

use serde_json::{Map, Value, json};

use super::keys::{Shape, Table};

/// A schema that completes and checks workflow files.
#[must_use]
pub fn schema() -> Value {
    let definitions: Map<_, _> = Table::ALL
        .iter()
        .map(|table| (name(*table), mapping(*table)))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Undaunted workflow",
        "description": "A list of commands, or a workflow with settings.",
        "anyOf": [
            {"type": "array", "minItems": 1, "items": reference(Table::Command)},
            reference(Table::Workflow),
        ],
        "$defs": definitions,
    })
}

fn name(table: Table) -> String {
    format!("{table:?}")
}

fn reference(table: Table) -> Value {
    json!({"$ref": format!("#/$defs/{}", name(table))})
}

fn mapping(table: Table) -> Value {
    let properties: Map<_, _> = table
        .keys()
        .map(|key| {
            let mut value = shape(&key.shape);
            if let Some(object) = value.as_object_mut() {
                object.insert("description".to_owned(), key.about.into());
            }
            (key.name().to_owned(), value)
        })
        .collect();
    // The names of agents are keys of commands, and only the file knows them.
    let others = match table {
        Table::Command | Table::Handler => json!({"type": "string"}),
        _ => json!(false),
    };
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": others,
    });
    if let Some(object) = schema.as_object_mut() {
        let required = required(table);
        if !required.is_empty() {
            object.insert("required".to_owned(), required.into());
        }
        if table == Table::Backoff {
            object.insert("maxProperties".to_owned(), 1.into());
            object.insert("minProperties".to_owned(), 1.into());
        }
    }
    schema
}

/// Keys that a mapping cannot do without.
fn required(table: Table) -> Vec<&'static str> {
    match table {
        Table::Map => vec!["input", "agent_template"],
        Table::Http => vec!["url"],
        Table::WriteFile => vec!["path", "content"],
        Table::Rule => vec!["then"],
        Table::Pattern => vec!["pattern"],
        Table::Linear => vec!["increment"],
        Table::Custom => vec!["delays"],
        Table::FlowStep => vec!["id", "type"],
        Table::FlowHttp => vec!["endpoint"],
        Table::FlowGoals => vec!["goals"],
        Table::Predicate => vec!["script"],
        Table::Attribute => vec!["role"],
        Table::CommandList => vec!["commands"],
        _ => Vec::new(),
    }
}

fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Count => json!({"type": "integer", "minimum": 0}),
        Shape::Number => json!({"type": "number"}),
        Shape::Duration => json!({
            "type": "string",
            "pattern": "^ *([0-9]+(\\.[0-9]+)?(ns|us|ms|s|sec|m|min|h|hr|d|w|M|y) *)+$",
        }),
        Shape::Statuses => {
            let one = json!({"anyOf": [
                {"type": "integer", "minimum": 100, "maximum": 599},
                {"type": "string", "pattern": "^([1-5]xx|[1-5][0-9]{2}(-[1-5][0-9]{2})?)$"},
            ]});
            json!({"anyOf": [one, {"type": "array", "items": one}]})
        }
        Shape::Anything => json!({}),
        Shape::Words(words) => json!({"enum": words}),
        Shape::ListOf(inner) => json!({"type": "array", "items": self::shape(inner)}),
        Shape::MapOf(inner) => {
            json!({"type": "object", "additionalProperties": self::shape(inner)})
        }
        Shape::AnyOf(shapes) => {
            let shapes: Vec<_> = shapes.iter().map(self::shape).collect();
            json!({"anyOf": shapes})
        }
        Shape::Keys(table) => reference(*table),
    }
}
