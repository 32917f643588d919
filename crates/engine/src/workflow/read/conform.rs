//! Checks the shape of a value before its meaning is read.
//!
//! The policy crate reads `retry_config` with serde, whose messages speak of fields and variants. Wrong
//! keys and words are found here first, with the messages used everywhere else.

use crate::workflow::diagnostic::{Code, nearest};
use crate::workflow::keys::{Shape, Table, plain_strategies};
use crate::workflow::yaml::{Node, Value};

use super::reader::Reader;

/// Help for a word that another shape would take.
fn meant(word: &str, shapes: &[Shape]) -> Option<String> {
    let flags = shapes.iter().any(|shape| matches!(shape, Shape::Flag));
    if flags && matches!(word, "true" | "yes" | "on" | "false" | "no" | "off") {
        let flag = matches!(word, "true" | "yes" | "on");
        return Some(format!("write `{flag}`, without quotes"));
    }
    shapes.iter().find_map(|shape| match shape {
        Shape::Keys(table) => {
            let key = table.keys().find(|key| key.name() == word)?;
            let Shape::Keys(inner) = key.shape else {
                return None;
            };
            let needed = *inner.required().first()?;
            Some(format!("it needs settings of its own: `{{{word}: {{{needed}: …}}}}`"))
        }
        _ => None,
    })
}

impl Reader<'_> {
    /// Notes keys and words that the shape does not have. The meaning of a value is not checked.
    pub(super) fn conforms(&mut self, node: &Node<'_>, shape: &Shape) -> bool {
        match (shape, &node.value) {
            (Shape::Keys(table), _) => self.conforms_to(node, *table),
            (Shape::Words(words), Value::Text(word)) => self.known_word(node, word, words),
            (Shape::Strategy, Value::Text(word)) => self.known_word(node, word, &plain_strategies()),
            (Shape::Words(words), _) => {
                self.expected::<()>(node, &format!("one of {}", words.join(", ")));
                false
            }
            (Shape::ListOf(inner), Value::List(nodes)) => {
                // Every element is checked, even after a wrong one.
                let wrong = nodes.iter().filter(|node| !self.conforms(node, inner));
                wrong.count() == 0
            }
            (Shape::ListOf(_), _) => {
                self.expected::<()>(node, "a list");
                false
            }
            (Shape::AnyOf(shapes), _) => self.conforms_to_any(node, shapes),
            _ => true,
        }
    }

    fn conforms_to(&mut self, node: &Node<'_>, table: Table) -> bool {
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
    fn conforms_to_any(&mut self, node: &Node<'_>, shapes: &[Shape]) -> bool {
        let kind = |shape: &&Shape| match (shape, &node.value) {
            (Shape::Keys(_), Value::Map(_)) | (Shape::ListOf(_), Value::List(_)) => true,
            (Shape::Words(_) | Shape::Strategy, Value::Text(_)) => {
                !shapes.iter().any(|shape| matches!(shape, Shape::Text | Shape::Duration))
            }
            _ => false,
        };
        if let Value::Text(word) = &node.value
            && let Some(help) = meant(word, shapes)
        {
            let message = format!("`{word}` is not known here");
            self.problem_with_help(Code::WrongValue, node.span, message, help);
            return false;
        }
        let shape = shapes.iter().find(kind);
        shape.is_none_or(|shape| self.conforms(node, shape))
    }

    fn known_word(&mut self, node: &Node<'_>, word: &str, words: &[&str]) -> bool {
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
        self.problem_with_help(Code::WrongValue, node.span, message, help);
        false
    }
}
