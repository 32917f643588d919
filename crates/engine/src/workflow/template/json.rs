//! JSON whose strings hold references: the body of a request.
//!
//! A string that is one `${…}` and nothing else is replaced by the value itself, so a number stays a
//! number and an object an object; in a longer string values are inserted as text. Keys are not
//! templates. Nothing here becomes an argument of a command, so values may have any size.

use serde_json::Value;

use super::names::KnownNames;
use super::reader::MOST_ERRORS;
use super::reference::{Reference, TemplateValues, ValueError};
use super::text::TextTemplate;
use crate::workflow::filter::SyntaxError;

#[derive(Debug, Clone, PartialEq)]
pub struct JsonTemplate {
    value: Value,
    strings: Vec<StringTemplate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonTemplateError {
    /// A JSON pointer to the string (RFC 6901).
    pub pointer: String,
    /// Its range is in the bytes of the string.
    pub error: SyntaxError,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct StringTemplate {
    pointer: String,
    template: TextTemplate,
}

impl JsonTemplate {
    /// The errors are in the order of the value, at most a thousand.
    pub fn parse(value: &Value, names: &KnownNames<'_>) -> Result<Self, Vec<JsonTemplateError>> {
        let mut strings = vec![];
        let mut errors = vec![];
        // The stack is explicit, because the author chooses how deep the value is.
        let mut waiting = vec![(String::new(), value)];
        while errors.len() < MOST_ERRORS
            && let Some((pointer, value)) = waiting.pop()
        {
            match value {
                Value::String(text) if text.contains("${") => match TextTemplate::parse(text, names) {
                    Ok(template) => strings.push(StringTemplate { pointer, template }),
                    Err(found) => errors.extend(found.into_iter().map(|error| {
                        let pointer = pointer.clone();
                        JsonTemplateError { pointer, error }
                    })),
                },
                Value::Array(values) => {
                    let values = values.iter().enumerate().rev();
                    waiting.extend(values.map(|(at, value)| (format!("{pointer}/{at}"), value)));
                }
                Value::Object(fields) => {
                    let path = |key: &str| format!("{pointer}/{}", escaped(key));
                    waiting.extend(fields.iter().rev().map(|(key, value)| (path(key), value)));
                }
                _ => {}
            }
        }
        errors.truncate(MOST_ERRORS);
        if errors.is_empty() {
            let value = value.clone();
            Ok(Self { value, strings })
        } else {
            Err(errors)
        }
    }

    /// Fails on the first missing value.
    pub fn render(&self, values: &dyn TemplateValues) -> Result<Value, ValueError> {
        let mut rendered = self.value.clone();
        for string in &self.strings {
            let value = match string.template.only_reference() {
                Some(reference) => reference.value_in(values)?.into_owned(),
                None => string.template.render_body(values)?.into(),
            };
            if let Some(slot) = rendered.pointer_mut(&string.pointer) {
                *slot = value;
            }
        }
        Ok(rendered)
    }

    /// In the order of the value; one that is written twice comes twice.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.strings.iter().flat_map(|string| string.template.references())
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
