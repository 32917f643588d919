//! Which keys of a mapping go together.

use serde_json::{Map, Value, json};

use crate::workflow::keys::{ACTIONS, MappingTable, keys_of_other_modes};
use crate::workflow::model::WorkflowMode;

/// `known` are the keys of a mapping whose other keys may be agents.
pub(super) fn of(table: MappingTable, known: Option<&[&str]>) -> Vec<Value> {
    match table {
        MappingTable::Workflow => modes().into_iter().chain(tolerance()).collect(),
        MappingTable::ErrorPolicy => tolerance(),
        MappingTable::Command => vec![one_action(known)],
        MappingTable::Handler => {
            let several = json!({
                "propertyNames": {"enum": ["commands", "max_attempts", "fail_workflow"]},
            });
            let mut condition = when(json!({"required": ["commands"]}), several);
            super::add(&mut condition, json!({"else": one_action(known)}));
            vec![condition]
        }
        MappingTable::Input => vec![either("file", "shell")],
        MappingTable::Secret => vec![either("env", "file")],
        MappingTable::Backoff => vec![json!({"minProperties": 1, "maxProperties": 1})],
        MappingTable::Rule => vec![when(
            json!({"required": ["retry_config"]}),
            json!({"properties": {"then": {"const": "retry"}}}),
        )],
        MappingTable::FlowStep => {
            let done_by = |key: &str, other: &str| json!({"required": [key], "properties": {other: false}});
            vec![
                when(is("type", "flow"), done_by("flow", "http")),
                when(is("type", "sync"), done_by("http", "flow")),
                when(is("type", "async"), done_by("http", "flow")),
            ]
        }
        MappingTable::Attribute => vec![
            when(is("role", "const"), json!({"required": ["default"]})),
            when(
                is("role", "output"),
                json!({"properties": {"for_each": {"const": false}, "default": false}}),
            ),
            when(is("role", "required"), json!({"properties": {"default": false}})),
            when(is("for_each", true), json!({"properties": {"type": {"enum": ["array", "any"]}}})),
        ],
        _ => Vec::new(),
    }
}

fn when(condition: Value, then: Value) -> Value {
    let mut schema = Map::new();
    schema.insert("if".to_owned(), condition);
    schema.insert("then".to_owned(), then);
    Value::Object(schema)
}

fn is(key: &str, value: impl Into<Value>) -> Value {
    json!({"required": [key], "properties": {key: {"const": value.into()}}})
}

fn either(first: &str, second: &str) -> Value {
    json!({"oneOf": [{"required": [first]}, {"required": [second]}]})
}

/// A command does one thing; an unknown key is an agent, and then the action.
fn one_action(known: Option<&[&str]>) -> Value {
    let actions = ACTIONS.iter().map(|action| json!({"required": [action.name()]}));
    let mut alternatives: Vec<_> = actions.collect();
    if let Some(known) = known {
        alternatives.push(json!({"not": {"propertyNames": {"enum": known}}}));
    }
    json!({"oneOf": alternatives})
}

fn modes() -> Vec<Value> {
    let none = |mode| -> Map<_, _> {
        keys_of_other_modes(mode).into_iter().map(|key| (key.to_owned(), json!(false))).collect()
    };
    vec![
        // A workflow that does not say its mode is a list of commands.
        when(
            json!({"properties": {"mode": {"const": "sequence"}}}),
            json!({
                "required": ["commands"],
                "properties": none(WorkflowMode::Sequence),
            }),
        ),
        when(
            is("mode", "mapreduce"),
            json!({
                "required": ["map"],
                "properties": none(WorkflowMode::MapReduce),
            }),
        ),
        when(
            is("mode", "flow"),
            json!({"required": ["steps", "goals"], "properties": none(WorkflowMode::Flow)}),
        ),
    ]
}

/// Three keys can set "stop at the first failure"; they must agree.
fn tolerance() -> Vec<Value> {
    let first = json!({"anyOf": [is("on_item_failure", "stop"), is("continue_on_failure", false)]});
    vec![
        when(first, json!({"properties": {"max_failures": {"const": 1}}})),
        when(is("on_item_failure", "stop"), json!({"properties": {"continue_on_failure": {"const": false}}})),
    ]
}
