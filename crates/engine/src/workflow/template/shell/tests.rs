//! The text that shell templates write, what they refuse, and how real shells run it.

mod refused;
mod running;
mod untouched;
mod written;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Script, ShellTemplate};
use crate::workflow::filter::SyntaxError;
use crate::workflow::template::fixture::{TestItem, with_names};
use crate::workflow::template::{KnownNames, Reference, ValueError};

fn parse(text: &str) -> Result<ShellTemplate, Vec<SyntaxError>> {
    with_names(|names| ShellTemplate::parse(text, names))
}

/// The script for an item whose field `x` is this.
fn script(text: &str, x: &str) -> Script {
    let template = parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
    template.render(&TestItem(json!({ "x": x }))).unwrap()
}
