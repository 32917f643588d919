//! The value of a reference, and when it is refused.
//!
//! The caller looks values up; this file decides what counts as missing, when a default is used and how
//! a value is written as text. A value that cannot be given to a command (too large for one argument,
//! or holding NUL) is refused before anything starts.

use std::borrow::Cow;

use serde_json::Value;

use super::reference::Reference;

/// Linux allows 128 KiB for one argument or variable, name included; the rest is for the text around the
/// value.
const MOST_BYTES: usize = 100 * 1024;

pub trait TemplateValues {
    /// `None` if it does not exist.
    fn value(&self, reference: &Reference) -> Option<Cow<'_, Value>>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Null without a default is missing too.
    #[error("`{name}` has no value")]
    Missing { name: String },
    #[error("`{name}` has {size} bytes, and {MOST_BYTES} is the most a command can be given")]
    TooLarge { name: String, size: usize },
    #[error("`{name}` holds a NUL character, which no command can be given")]
    HoldsNul { name: String },
}

impl ValueError {
    pub fn help(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "`:-` gives a default, as in `${item.name:-none}`",
            Self::TooLarge { name, .. } | Self::HoldsNul { name } => way_out(name),
        }
    }
}

fn way_out(name: &str) -> &'static str {
    let root = name.split(['.', '[']).next();
    match root {
        Some("item") => "`${item_file}` is the path of a file holding the item as JSON",
        Some("map") => "`${map.results_file}` is the path of a file holding the results as JSON",
        _ => "let the command that gives it write a file, and give on the path of the file",
    }
}

pub(super) fn value<'v>(
    reference: &Reference,
    values: &'v dyn TemplateValues,
) -> Result<Cow<'v, Value>, ValueError> {
    let found = values.value(reference).filter(|value| !value.is_null());
    match (found, reference.default()) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if value.as_str() != Some("") => Ok(value),
        (_, Some(default)) => Ok(Cow::Owned(Value::from(default))),
        (None, None) => Err(ValueError::Missing { name: reference.text().to_owned() }),
    }
}

/// A string as it is, anything else as compact JSON.
pub(super) fn text(value: Cow<'_, Value>) -> String {
    match value {
        Cow::Owned(Value::String(text)) => text,
        Cow::Borrowed(Value::String(text)) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn argument(reference: &Reference, values: &dyn TemplateValues) -> Result<String, ValueError> {
    let text = text(value(reference, values)?);
    let name = || reference.text().to_owned();
    if text.len() > MOST_BYTES {
        return Err(ValueError::TooLarge { name: name(), size: text.len() });
    }
    if text.contains('\0') {
        return Err(ValueError::HoldsNul { name: name() });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_out_depends_on_where_the_value_comes_from() {
        for (name, expected) in [
            ("item", "${item_file}"),
            ("item.a[0]", "${item_file}"),
            ("item[0]", "${item_file}"),
            ("map.results", "${map.results_file}"),
            ("items", "write a file"),
            ("step.build.output", "write a file"),
        ] {
            let name = name.to_owned();
            let size = 1;
            let help = ValueError::TooLarge { name, size }.help();
            assert!(help.contains(expected), "{help}");
        }
    }
}
