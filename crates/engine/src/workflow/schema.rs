//! JSON Schema for editors, made from the tables of keys.
//!
//! The tables say which keys there are and which kind of value each has; `limits` adds what a value may
//! be, `conditions` which keys go together. What a schema cannot express (names in templates, ids,
//! filters, two spellings of one setting) is left to `check`.
//!
//! The names of agents are keys of commands, and only the file knows them. So everything that holds
//! commands is defined twice: for files without agents, where a wrong key is found, and for files with
//! agents, where an unknown key may be one of them.

mod conditions;
mod limits;

use serde_json::{Map, Value, json};

use super::keys::{MappingKey, MappingTable, NOT_IN_HANDLERS, ValueShape, plain_strategies};

pub fn schema() -> Value {
    let definitions: Map<_, _> =
        SchemaDefinition::all().map(|definition| (definition.name(), definition.schema())).collect();
    let whole = |agents| SchemaDefinition::new(MappingTable::Workflow, agents).reference();
    // Conditions instead of `anyOf`: an editor then reports what is wrong with the variant that applies,
    // not that none fits.
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Undaunted workflow",
        "description": "A list of commands, or a workflow with settings.",
        "type": ["array", "object"],
        "if": {"type": "array"},
        "then": {"minItems": 1, "items": SchemaDefinition::new(MappingTable::Command, false).reference()},
        "else": {
            "if": {
                "required": ["agents"],
                "properties": {"agents": {"type": "object", "minProperties": 1}},
            },
            "then": whole(true),
            "else": whole(false),
        },
        "$defs": definitions,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SchemaDefinition {
    table: MappingTable,
    /// Whether the file has agents, whose names are keys of commands.
    agents: bool,
    /// Whether it is a command inside a handler, which has no handlers of its own.
    handled: bool,
}

impl SchemaDefinition {
    fn new(table: MappingTable, agents: bool) -> Self {
        Self { table, agents: agents && holds_commands(table), handled: false }
    }

    fn all() -> impl Iterator<Item = Self> {
        let variants = |table: MappingTable| {
            let handled = table == MappingTable::Command;
            let agents = holds_commands(table);
            [(false, false), (true, false), (false, true), (true, true)]
                .into_iter()
                .filter(move |variant| (agents || !variant.0) && (handled || !variant.1))
                .map(move |(agents, handled)| Self { table, agents, handled })
        };
        MappingTable::all().flat_map(variants)
    }

    fn name(self) -> String {
        let place = if self.handled { "Handler" } else { "" };
        let agents = if self.agents { "WithAgents" } else { "" };
        match self.table {
            MappingTable::Strategy(strategy) => {
                let (first, rest) = strategy.name.split_at(1);
                first.to_ascii_uppercase() + rest
            }
            table => format!("{place}{table:?}{agents}"),
        }
    }

    fn reference(self) -> Value {
        json!({"$ref": format!("#/$defs/{}", self.name())})
    }

    fn keys(self) -> impl Iterator<Item = MappingKey> {
        let here = move |key: &MappingKey| !(self.handled && NOT_IN_HANDLERS.contains(&key.name));
        self.table.keys().filter(here)
    }

    fn schema(self) -> Value {
        let property = |key: MappingKey| (key.name().to_owned(), self.property(key));
        let properties: Map<_, _> = self.keys().map(property).collect();
        let action = matches!(self.table, MappingTable::Command | MappingTable::Handler);
        let others = if self.agents && action { json!({"type": "string"}) } else { json!(false) };
        let mut schema = json!({
            "type": "object",
            "properties": properties,
            "additionalProperties": others,
        });
        let required = self.table.required();
        if !required.is_empty() {
            add(&mut schema, json!({"required": required}));
        }
        let known: Vec<_> = self.keys().map(MappingKey::name).collect();
        let conditions = conditions::of(self.table, self.agents.then_some(known.as_slice()));
        if !conditions.is_empty() {
            add(&mut schema, json!({"allOf": conditions}));
        }
        schema
    }

    fn property(self, key: MappingKey) -> Value {
        let within =
            Self { handled: self.table == MappingTable::Handler || key.name == "on_failure", ..self };
        let mut value = within.shape(&key.shape);
        add(&mut value, limits::of(self.table, key));
        if self.table == MappingTable::Workflow && matches!(key.name, "setup" | "reduce") {
            // A heading with nothing below it is allowed.
            value = json!({"anyOf": [value, {"type": "null"}]});
        }
        add(&mut value, json!({"description": key.about}));
        value
    }

    fn shape(self, shape: &ValueShape) -> Value {
        match shape {
            ValueShape::Text => json!({"type": "string"}),
            ValueShape::Flag => json!({"type": "boolean"}),
            ValueShape::Count => json!({"type": "integer", "minimum": 0}),
            ValueShape::Number => json!({"type": "number"}),
            ValueShape::Factor => json!({"type": "number", "minimum": 1}),
            ValueShape::Duration => json!({"type": "string", "pattern": limits::DURATION}),
            ValueShape::Statuses => {
                let one = json!({"anyOf": [
                    {"type": "integer", "minimum": 100, "maximum": 599},
                    {"type": "string", "pattern": limits::STATUSES},
                ]});
                json!({"anyOf": [one, {"type": "array", "items": one}]})
            }
            ValueShape::Anything => json!({}),
            ValueShape::Words(words) => json!({"enum": words}),
            ValueShape::Strategy => json!({"enum": plain_strategies()}),
            ValueShape::ListOf(inner) => {
                let mut list = json!({"type": "array", "items": self.shape(inner)});
                if matches!(inner, ValueShape::Keys(MappingTable::Command)) {
                    add(&mut list, json!({"minItems": 1}));
                }
                list
            }
            ValueShape::MapOf(inner) => {
                json!({"type": "object", "additionalProperties": self.shape(inner)})
            }
            ValueShape::AnyOf(shapes) => {
                let shapes: Vec<_> = shapes.iter().map(|shape| self.shape(shape)).collect();
                json!({"anyOf": shapes})
            }
            ValueShape::Keys(table) => self.inner(*table).reference(),
        }
    }

    fn inner(self, table: MappingTable) -> Self {
        Self { handled: self.handled && table == MappingTable::Command, ..Self::new(table, self.agents) }
    }
}

/// Mappings that are, or lead to, commands.
const fn holds_commands(table: MappingTable) -> bool {
    matches!(
        table,
        MappingTable::Workflow
            | MappingTable::CommandList
            | MappingTable::Command
            | MappingTable::Handler
            | MappingTable::Map
    )
}

/// Adds keywords to a schema, replacing those it has.
fn add(schema: &mut Value, keywords: Value) {
    if let (Value::Object(schema), Value::Object(keywords)) = (schema, keywords) {
        schema.extend(keywords);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn reached(value: &Value, definitions: &Value, seen: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(target)) = object.get("$ref") {
                    let name = target.trim_start_matches("#/$defs/");
                    let definition = definitions.get(name);
                    assert!(definition.is_some(), "{target} is not defined");
                    if seen.insert(name.to_owned()) {
                        reached(definition.unwrap_or(&Value::Null), definitions, seen);
                    }
                }
                for value in object.values() {
                    reached(value, definitions, seen);
                }
            }
            Value::Array(values) => {
                for value in values {
                    reached(value, definitions, seen);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn commands_with_and_without_agents_are_never_mixed() {
        let definitions = schema().get("$defs").cloned().unwrap_or_default();
        for agents in [false, true] {
            let mut seen = BTreeSet::new();
            let workflow = SchemaDefinition::new(MappingTable::Workflow, agents).reference();
            reached(&workflow, &definitions, &mut seen);
            for definition in SchemaDefinition::all().filter(|one| holds_commands(one.table)) {
                let name = definition.name();
                assert_eq!(seen.contains(&name), definition.agents == agents, "{name}");
            }
        }
    }

    #[test]
    fn every_definition_is_used() {
        let mut schema = schema();
        let definitions = schema.get("$defs").cloned().unwrap_or_default();
        schema.as_object_mut().map(|object| object.remove("$defs"));
        let mut seen = BTreeSet::new();
        reached(&schema, &definitions, &mut seen);
        let all: BTreeSet<_> = SchemaDefinition::all().map(SchemaDefinition::name).collect();
        assert_eq!(seen, all);
    }
}
