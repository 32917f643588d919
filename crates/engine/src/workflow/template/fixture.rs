//! The names and values that the tests of templates use.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{KnownNames, Reference, Root, TemplateValues};

/// An item; every captured output is its own name.
pub(super) struct TestItem(pub(super) Value);

impl TemplateValues for TestItem {
    fn value(&self, reference: &Reference) -> Option<Cow<'_, Value>> {
        match reference.root() {
            Root::Item => reference.follow(&self.0).map(Cow::Borrowed),
            Root::Captured(name) => Some(Cow::Owned(json!(name))),
            _ => None,
        }
    }
}

/// Parses with an item, the captured output `version` and the step `build`.
pub(super) fn with_names<T>(parse: impl FnOnce(&KnownNames<'_>) -> T) -> T {
    let captured = BTreeSet::from(["version".to_owned()]);
    let steps = BTreeSet::from(["build".to_owned()]);
    parse(&KnownNames { item: true, map: false, captured: &captured, steps: &steps })
}
