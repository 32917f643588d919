//! YAML as a tree in which every value knows its span.

mod parse;
mod tree;

pub(crate) use parse::parse;
pub(crate) use tree::{YamlEntry, YamlNode, YamlValue};

#[cfg(test)]
mod tests;
