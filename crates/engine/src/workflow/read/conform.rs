//! Whether a value has the shape its key asks for, before anybody reads what it means.
//!
//! The policy crate reads `retry_config` with serde, whose messages speak of fields and variants.
//! Wrong keys and wrong words are found here first, in the words of everything else.

use crate::workflow::diagnostic::{Code, nearest};
use crate::workflow::keys::{Shape, Table, plain_strategies};
use crate::workflow::yaml::{Node, Value};

use super::reader::Reader;

/// What a word was meant as, where another shape would take it.
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
            Some(format!(
                "it needs settings of its own: `{{{word}: {{{needed}: …}}}}`"
            ))
        }
        _ => None,
    })
}

impl Reader<'_> {
    /// Notes keys and words that the shape does not have. What a value means is not asked.
    pub(super) fn conforms(&mut self, node: &Node<'_>, shape: &Shape) -> bool {
        match (shape, &node.value) {
            (Shape::Keys(table), _) => self.conforms_to(node, *table),
            (Shape::Words(words), Value::Text(word)) => self.known_word(node, word, words),
            (Shape::Strategy, Value::Text(word)) => {
                self.known_word(node, word, &plain_strategies())
            }
            (Shape::Words(words), _) => {
                self.expected(node, &format!("one of {}", words.join(", ")));
                false
            }
            (Shape::ListOf(inner), Value::List(nodes)) => {
                // Every element is looked at, also behind one that is wrong.
                let wrong = nodes
                    .iter()
                    .filter(|node| !self.conforms(node, inner))
                    .count();
                wrong == 0
            }
            (Shape::ListOf(_), _) => {
                self.expected(node, "a list");
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

    /// The shape that this kind of value is meant to have decides.
    fn conforms_to_any(&mut self, node: &Node<'_>, shapes: &[Shape]) -> bool {
        let kind = |shape: &&Shape| match (shape, &node.value) {
            (Shape::Keys(_), Value::Map(_)) | (Shape::ListOf(_), Value::List(_)) => true,
            (Shape::Words(_) | Shape::Strategy, Value::Text(_)) => !shapes
                .iter()
                .any(|shape| matches!(shape, Shape::Text | Shape::Duration)),
            _ => false,
        };
        if let Value::Text(word) = &node.value
            && let Some(help) = meant(word, shapes)
        {
            let message = format!("`{word}` is not known here");
            self.problem_with_help(Code::WrongValue, node.span, message, help);
            return false;
        }
        if let Some(shape) = shapes.iter().find(kind) {
            return self.conforms(node, shape);
        }
        true
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
