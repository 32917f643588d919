//! JSON whose strings hold references: the body of a request.
//!
//! A string that is one `${…}` and nothing else is replaced by the value itself, so a number
//! stays a number and an object an object; in a longer string values are inserted as text. Keys
//! are not templates. Nothing here is given to a command, so a value of any size is welcome.

use serde_json::Value;

use super::names::Names;
use super::reference::Reference;
use super::template_error::{MOST_ERRORS, TemplateError};
use super::text::TextTemplate;
use super::value::{self, ValueError, Values};

/// JSON whose strings hold references, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTemplate {
    value: Value,
    strings: Vec<Place>,
}

/// Why a string in JSON was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonTemplateError {
    /// The JSON pointer to the string (RFC 6901).
    pub pointer: String,
    /// What is wrong with it; the range is in the bytes of the string.
    pub error: TemplateError,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    pointer: String,
    template: TextTemplate,
}

impl JsonTemplate {
    /// Reads the strings of a value against the names that exist where it stands.
    ///
    /// # Errors
    ///
    /// All that is wrong with any string, in the order of the value, or the first thousand of it.
    pub fn parse(value: &Value, names: &Names<'_>) -> Result<Self, Vec<JsonTemplateError>> {
        let mut strings = vec![];
        let mut errors = vec![];
        // A stack of its own: the depth of the value is the author's.
        let mut waiting = vec![(String::new(), value)];
        while errors.len() < MOST_ERRORS
            && let Some((pointer, value)) = waiting.pop()
        {
            match value {
                Value::String(text) if text.contains("${") => {
                    match TextTemplate::parse(text, names) {
                        Ok(template) => strings.push(Place { pointer, template }),
                        Err(found) => errors.extend(found.into_iter().map(|error| {
                            let pointer = pointer.clone();
                            JsonTemplateError { pointer, error }
                        })),
                    }
                }
                Value::Array(values) => waiting.extend(
                    values
                        .iter()
                        .enumerate()
                        .rev()
                        .map(|(index, value)| (format!("{pointer}/{index}"), value)),
                ),
                Value::Object(fields) => waiting.extend(
                    fields
                        .iter()
                        .rev()
                        .map(|(key, value)| (format!("{pointer}/{}", escaped(key)), value)),
                ),
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

    /// The value with all values in it.
    ///
    /// # Errors
    ///
    /// The first value that is missing.
    pub fn render(&self, values: &dyn Values) -> Result<Value, ValueError> {
        let mut rendered = self.value.clone();
        for place in &self.strings {
            let value = match place.template.only_reference() {
                Some(reference) => value::value(reference, values)?.into_owned(),
                None => Value::from(
                    place
                        .template
                        .filled(|reference| Ok(value::text(value::value(reference, values)?)))?,
                ),
            };
            if let Some(string) = rendered.pointer_mut(&place.pointer) {
                *string = value;
            }
        }
        Ok(rendered)
    }

    /// The references in the order of the value; one that stands twice comes twice.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.strings
            .iter()
            .flat_map(|place| place.template.references())
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
