//! What shell templates promise: the text they write, what they refuse, and what shells make of it.

mod refused;
mod running;
mod untouched;
mod written;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Script, ShellTemplate};
use crate::workflow::template::{KnownNames, Reference, Root, TemplateError, TemplateValues, ValueError};

/// An item, and captured names that are worth their own name.
struct Item(Value);

impl TemplateValues for Item {
    fn value(&self, reference: &Reference) -> Option<Cow<'_, Value>> {
        match reference.root() {
            Root::Item => reference.follow(&self.0).map(Cow::Borrowed),
            Root::Captured(name) => Some(Cow::Owned(json!(name))),
            _ => None,
        }
    }
}

fn parse(text: &str) -> Result<ShellTemplate, Vec<TemplateError>> {
    let captured = BTreeSet::from(["version".to_owned()]);
    let steps = BTreeSet::from(["build".to_owned()]);
    let names = KnownNames { item: true, map: false, captured: &captured, steps: &steps };
    ShellTemplate::parse(text, &names)
}

/// The script for an item whose field `x` is this.
fn script(text: &str, x: &str) -> Script {
    let template = parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    template.render(&Item(json!({ "x": x }))).unwrap()
}
