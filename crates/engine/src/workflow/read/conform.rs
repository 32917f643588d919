//! Checks the shape of a value before its meaning is read.
//!
//! The policy crate reads `retry_config` with serde, whose messages speak of fields and variants. Wrong
//! keys and words are found here first, with the messages used everywhere else.

use crate::workflow::diagnostic::{DiagnosticCode, nearest};
use crate::workflow::keys::{MappingTable, ValueShape, plain_strategies};
use crate::workflow::yaml::{YamlNode, YamlValue};

use super::reader::WorkflowReader;

/// Help for a word that another shape would take.
fn meant(word: &str, shapes: &[ValueShape]) -> Option<String> {
    let flags = shapes.iter().any(|shape| matches!(shape, ValueShape::Flag));
    if flags && matches!(word, "true" | "yes" | "on" | "false" | "no" | "off") {
        let flag = matches!(word, "true" | "yes" | "on");
        return Some(format!("write `{flag}`, without quotes"));
    }
    shapes.iter().find_map(|shape| match shape {
        ValueShape::Keys(table) => {
            let key = table.keys().find(|key| key.name() == word)?;
            let ValueShape::Keys(inner) = key.shape else {
                return None;
            };
            let needed = *inner.required().first()?;
            Some(format!("it needs settings of its own: `{{{word}: {{{needed}: …}}}}`"))
        }
        _ => None,
    })
}

impl WorkflowReader<'_> {
    /// Notes keys and words that the shape does not have. The meaning of a value is not checked.
    pub(super) fn conforms(&mut self, node: &YamlNode<'_>, shape: &ValueShape) -> bool {
        match (shape, &node.value) {
            (ValueShape::Keys(table), _) => self.conforms_to(node, *table),
            (ValueShape::Words(words), YamlValue::Text(word)) => self.known_word(node, word, words),
            (ValueShape::Strategy, YamlValue::Text(word)) => self.known_word(node, word, &plain_strategies()),
            (ValueShape::Words(words), _) => {
                self.expected::<()>(node, &format!("one of {}", words.join(", ")));
                false
            }
            (ValueShape::ListOf(inner), YamlValue::List(nodes)) => {
                // Every element is checked, even after a wrong one.
                let wrong = nodes.iter().filter(|node| !self.conforms(node, inner));
                wrong.count() == 0
            }
            (ValueShape::ListOf(_), _) => {
                self.expected::<()>(node, "a list");
                false
            }
            (ValueShape::AnyOf(shapes), _) => self.conforms_to_any(node, shapes),
            _ => true,
        }
    }

    fn conforms_to(&mut self, node: &YamlNode<'_>, table: MappingTable) -> bool {
        let before = self.problems.found.len();
        let Some(fields) = self.fields(node, table) else {
            return false;
        };
        for entry in fields.entries {
            let key = table.keys().find(|key| key.name() == &*entry.key);
            if let Some(key) = key {
                self.conforms(&entry.node, &key.shape);
            }
        }
        for needed in table.required() {
            if fields.get(needed).is_none() {
                self.missing(&fields, needed, table);
            }
        }
        self.problems.found.len() == before && !self.problems.is_full()
    }

    /// The kind of the value decides which shape is meant.
    fn conforms_to_any(&mut self, node: &YamlNode<'_>, shapes: &[ValueShape]) -> bool {
        let kind = |shape: &&ValueShape| match (shape, &node.value) {
            (ValueShape::Keys(_), YamlValue::Map(_)) | (ValueShape::ListOf(_), YamlValue::List(_)) => true,
            (ValueShape::Words(_) | ValueShape::Strategy, YamlValue::Text(_)) => {
                !shapes.iter().any(|shape| matches!(shape, ValueShape::Text | ValueShape::Duration))
            }
            _ => false,
        };
        if let YamlValue::Text(word) = &node.value
            && let Some(help) = meant(word, shapes)
        {
            let message = format!("`{word}` is not known here");
            self.problem_with_help(DiagnosticCode::WrongValue, node.span, message, help);
            return false;
        }
        let shape = shapes.iter().find(kind);
        shape.is_none_or(|shape| self.conforms(node, shape))
    }

    fn known_word(&mut self, node: &YamlNode<'_>, word: &str, words: &[&str]) -> bool {
        if words.contains(&word) {
            return true;
        }
        let message = format!("`{word}` is not known here");
        let help = if word.parse::<u64>().is_ok() {
            format!("a number stands without quotes: {word}")
        } else {
            match nearest(word, words.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known is {}", words.join(", ")),
            }
        };
        self.problem_with_help(DiagnosticCode::WrongValue, node.span, message, help);
        false
    }
}
