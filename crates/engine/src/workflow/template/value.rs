//! What a reference is worth, and when a value is refused.
//!
//! The caller looks values up; here is decided what counts as missing, when a default stands in
//! and how a value is written as text. A value that cannot be handed to a command (too large for
//! one argument, or holding NUL) is refused before anything starts.

use std::borrow::Cow;

use serde_json::Value;

use super::reference::Reference;

/// Linux takes 128 KiB for one argument or variable, name included; the rest is for the text
/// around the value.
const MOST_BYTES: usize = 100 * 1024;

/// Where values come from.
pub trait Values {
    /// The value of a reference; nothing if it does not exist.
    fn value(&self, reference: &Reference) -> Option<Cow<'_, Value>>;
}

/// Why a value cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// It does not exist or is null, and there is no default.
    #[error("`{name}` has no value")]
    Missing {
        /// The reference as written.
        name: String,
    },
    /// It is larger than 100 KiB.
    #[error("`{name}` has {size} bytes, and {MOST_BYTES} is the most a command can be given")]
    TooLarge {
        /// The reference as written.
        name: String,
        /// Its size in bytes.
        size: usize,
    },
    /// It holds a NUL character.
    #[error("`{name}` holds a NUL character, which no command can be given")]
    HoldsNul {
        /// The reference as written.
        name: String,
    },
}

impl ValueError {
    /// What to write instead.
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

/// The value of a reference, or its default.
pub(super) fn value<'v>(
    reference: &Reference,
    values: &'v dyn Values,
) -> Result<Cow<'v, Value>, ValueError> {
    let found = values.value(reference).filter(|value| !value.is_null());
    match (found, reference.default()) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if value.as_str() != Some("") => Ok(value),
        (_, Some(default)) => Ok(Cow::Owned(Value::from(default))),
        (None, None) => Err(ValueError::Missing {
            name: reference.text().to_owned(),
        }),
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

/// The value of a reference as a text that a command can be given.
pub(super) fn argument(reference: &Reference, values: &dyn Values) -> Result<String, ValueError> {
    let text = text(value(reference, values)?);
    let name = || reference.text().to_owned();
    if text.len() > MOST_BYTES {
        return Err(ValueError::TooLarge {
            name: name(),
            size: text.len(),
        });
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
