//! The laws of a script: what the shell is given for a text with references.
//!
//! The references, the script and the value in; the first broken law out as a sentence. That the
//! laws can be broken is shown by their own tests, with scripts made up for it.

use std::collections::BTreeSet;

use serde_json::Value;
use undaunted_engine::workflow::template::{Reference, Script};

use super::law::first_broken;

#[cfg(test)]
mod tests;

/// The first law the script breaks. All references but the `raw:` ones were given `value`, which
/// holds the mark; `expected` is the text of another value's script.
pub(super) fn broken<'r>(
    references: impl Iterator<Item = &'r Reference>,
    script: &Script,
    expected: &str,
    value: &Value,
    mark: &str,
) -> Option<&'static str> {
    let references: Vec<&Reference> = references.collect();
    let once: BTreeSet<&Reference> = references.iter().copied().collect();
    let handed = references.iter().filter(|reference| !reference.is_raw());
    let names: BTreeSet<&str> = script.env.iter().map(|(name, _)| name.as_str()).collect();
    let read = |name: &&str| script.text.contains(&format!("${{{name}}}"));
    let ours = |name: &&str| name.starts_with("__undaunted_");
    first_broken([
        ("no value becomes code", !script.text.contains(mark)),
        ("what is run does not depend on the values", script.text == expected),
        ("a reference is named once", once.len() == references.len()),
        (
            "every reference has a variable of its own",
            script.env.len() == handed.count() && names.len() == script.env.len(),
        ),
        (
            "a variable holds the value and nothing else",
            script.env.iter().all(|(_, held)| *held == text(value)),
        ),
        ("every variable is read", names.iter().all(read)),
        ("a variable is ours by its name", names.iter().all(ours)),
    ])
}

/// A value as a command gets it: a string as it is, anything else as JSON.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
