//! YAML as a tree in which every value knows where it stands.

mod deserialize;
mod parse;
mod tree;

pub(crate) use parse::parse;
pub(crate) use tree::{Entry, Node, Value};

#[cfg(test)]
mod tests;
