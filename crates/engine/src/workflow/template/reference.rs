//! One `${…}`: what it names, its default, and its value as text.
//!
//! `names.rs` has checked that the name exists where it stands. The caller looks values up; this file
//! decides what counts as missing, when a default is used and how a value is written as text. A value
//! that cannot be passed to a command (too large for one argument, or with a NUL) is refused before
//! anything starts.

use std::borrow::Cow;

use serde_json::Value;

use crate::workflow::filter::{Segment, follow};

/// Linux allows 128 KiB for one argument or variable, name included; the rest is for the text around the
/// value.
const MOST_BYTES: usize = 100 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    Item,
    /// `item_file`: the path of a file with the item as JSON.
    ItemFile,
    /// `map`: the result of a map; the path begins with one of its fields.
    Map,
    /// `step.NAME`: the result of an earlier step; the path begins with `output` or `status`.
    Step(String),
    /// `env`: the path is the name of one environment variable.
    Env,
    /// `workflow`: the path is `name` or `job`.
    Workflow,
    /// A name given by `capture_output`.
    Captured(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub(super) text: String,
    pub(super) root: Root,
    pub(super) path: Vec<Segment>,
    pub(super) default: Option<String>,
    pub(super) raw: bool,
}

impl Reference {
    pub fn root(&self) -> &Root {
        &self.root
    }

    pub fn path(&self) -> &[Segment] {
        &self.path
    }

    /// The text after `:-`, used if the value is missing, null or an empty string.
    pub fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Whether it is `${raw:…}`: in a shell text the value is inserted as it is.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// The name as written, without `raw:` and without the default: `item.a.b[0]`.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn follow<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        follow(&self.path, root)
    }

    pub(super) fn value_in<'v>(&self, values: &'v dyn TemplateValues) -> Result<Cow<'v, Value>, ValueError> {
        let found = values.value(self).filter(|value| !value.is_null());
        match (found, self.default()) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(_)) if value.as_str() != Some("") => Ok(value),
            (_, Some(default)) => Ok(Cow::Owned(Value::from(default))),
            (None, None) => Err(ValueError::Missing { name: self.text.clone() }),
        }
    }

    /// A string as it is, anything else as compact JSON.
    pub(super) fn text_in(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        Ok(match self.value_in(values)? {
            Cow::Owned(Value::String(text)) => text,
            Cow::Borrowed(Value::String(text)) => text.clone(),
            other => other.to_string(),
        })
    }

    /// The text, if it can be an argument or a variable of a command.
    pub(super) fn argument_in(&self, values: &dyn TemplateValues) -> Result<String, ValueError> {
        let text = self.text_in(values)?;
        let name = || self.text.clone();
        if text.len() > MOST_BYTES {
            return Err(ValueError::TooLarge { name: name(), size: text.len() });
        }
        if text.contains('\0') {
            return Err(ValueError::HoldsNul { name: name() });
        }
        Ok(text)
    }
}

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
    #[error("`{name}` has {size} bytes; at most {MOST_BYTES} can be passed to a command")]
    TooLarge { name: String, size: usize },
    #[error("`{name}` contains a NUL character, which cannot be passed to a command")]
    HoldsNul { name: String },
}

impl ValueError {
    pub fn help(&self) -> &'static str {
        let (Self::TooLarge { name, .. } | Self::HoldsNul { name }) = self else {
            return "add a default with `:-`, as in `${item.name:-none}`";
        };
        match name.split(['.', '[']).next() {
            Some("item") => "use `${item_file}`, the path of a file with the item as JSON",
            Some("map") => "use `${map.results_file}`, the path of a file with the results as JSON",
            _ => "let the command write it to a file, and pass the path of the file",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_depends_on_where_the_value_comes_from() {
        for (name, expected) in [
            ("item", "${item_file}"),
            ("item.a[0]", "${item_file}"),
            ("item[0]", "${item_file}"),
            ("map.results", "${map.results_file}"),
            ("items", "write it to a file"),
            ("step.build.output", "write it to a file"),
        ] {
            let error = ValueError::TooLarge { name: name.to_owned(), size: 1 };
            assert!(error.help().contains(expected), "{name}: {}", error.help());
        }
    }
}
